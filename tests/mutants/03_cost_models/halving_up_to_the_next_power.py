"""Ranks up to the next power of two."""
# caught by: test_halving_doubling_cost
# mistake: rest_beyond_power_of_two
# %% halving_doubling_cost: changed
# -     steps = n.bit_length() - 1  # log2 of n, rounded down
# +     steps = (n - 1).bit_length()  # log2 of n, rounded down
# @@
# -     rest = 2 if n > core else 0
# +     rest = 0
