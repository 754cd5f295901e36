"""Lets all-reduces use the whole link at the same time."""
# caught by: test_all_reduces
# mistake: link_not_shared
# says: its bucket is full at 0.02 s, the link is free at 0.031 s
# %% all_reduces: changed
# -             begin = max(now, link_free)
# +             begin = now
