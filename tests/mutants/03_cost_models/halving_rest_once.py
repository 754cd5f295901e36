"""The rest's buffers once."""
# caught by: test_halving_doubling_cost
# mistake: rest_beyond_power_of_two
# %% halving_doubling_cost: changed
# -     return 2 * steps + rest, 2 * (core - 1) / core + rest
# +     return 2 * steps + rest, 2 * (core - 1) / core + rest / 2
