"""Sends a bucket as soon as the link is free, though its gradients are not there."""
# caught by: test_all_reduces
# mistake: too_early
# says: the begin of all-reduce 0 is 0,
# %% all_reduces: changed
# -             begin = max(now, link_free)
# +             begin = link_free
