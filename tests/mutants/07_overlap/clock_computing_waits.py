"""Stops computing while a bucket travels."""
# caught by: test_all_reduces
# says: the begin of all-reduce 1
# %% all_reduces: changed
#               filling = 0
# +             now = link_free
