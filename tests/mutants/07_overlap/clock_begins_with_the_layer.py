"""Sends a gradient when its layer begins to compute."""
# caught by: test_all_reduces
# mistake: too_early
# says: the begin of all-reduce 0 is 0,
# %% all_reduces: changed
# -             begin = max(now, link_free)
# +             begin = max(now - backwards[layer], link_free)
