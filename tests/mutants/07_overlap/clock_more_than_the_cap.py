"""A bucket that is just full is not sent."""
# caught by: test_all_reduces
# mistake: one_off
# says: all-reduce 0
# %% all_reduces: changed
# -         if filling >= cap or layer == 0:
# +         if filling > cap or layer == 0:
