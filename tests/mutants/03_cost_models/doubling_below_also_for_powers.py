"""P is below N also where N is a power of two."""
# caught by: test_doubling_cost
# mistake: rest_beyond_power_of_two
# %% doubling_cost: changed
# -     rounds = n.bit_length() - 1  # log2 of n, rounded down
# -     if n > 2**rounds:
# +     rounds = max(0, (n - 1).bit_length() - 1)  # log2 of n, rounded down
# +     if n > 1:
