"""Stops computing while a bucket travels."""
# caught by: test_all_reduces
# mistake: no_overlap
# says: its bucket is full at 0.02 s, the link is free at 0.015 s
# %% all_reduces: changed
#               filling = 0
# +             now = link_free
