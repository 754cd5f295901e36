"""Never sends what is left in the last bucket."""
# caught by: test_all_reduces
# mistake: last_left_out
# says: expected
# %% all_reduces: changed
# -         if filling >= cap or layer == 0:
# +         if filling >= cap:
