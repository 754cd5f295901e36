"""The logarithm as a float, rounded down: wrong just below a large power of two."""
# caught by: test_doubling_cost
# mistake: rounded_wrongly
# %% doubling_cost: changed
# -     rounds = n.bit_length() - 1  # log2 of n, rounded down
# +     from math import log2
# +
# +     rounds = int(log2(n))
