"""Counts only the last gradient of a bucket."""
# caught by: test_all_reduces
# mistake: one_for_all
# says: its bucket has 2,000,000 bytes
# %% all_reduces: changed
# -         filling += sizes[layer]
# +         filling += sizes[layer]
# +         last = sizes[layer]
# @@
# -             link_free = begin + alpha + beta * filling
# +             link_free = begin + alpha + beta * last
