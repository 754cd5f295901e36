"""No alpha for a bucket that waits in the queue."""
# caught by: test_all_reduces
# mistake: part_missing
# %% all_reduces: changed
# -             link_free = begin + alpha + beta * filling
# +             link_free = begin + (alpha if now >= link_free else 0.0) + beta * filling
