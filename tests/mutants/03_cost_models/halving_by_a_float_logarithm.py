"""The logarithm as a float, rounded down: wrong just below a large power of two."""
# caught by: test_halving_doubling_cost
# mistake: rounded_wrongly
# %% halving_doubling_cost: changed
# -     steps = n.bit_length() - 1  # log2 of n, rounded down
# +     from math import log2
# +
# +     steps = int(log2(n))
