"""Forgets alpha."""
# caught by: test_all_reduces
# mistake: part_missing
# says: the end of all-reduce 0
# %% all_reduces: changed
# -             link_free = begin + alpha + beta * filling
# +             link_free = begin + beta * filling
