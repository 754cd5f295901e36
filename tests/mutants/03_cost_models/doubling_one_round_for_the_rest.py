"""The rest is added, and never told the result."""
# caught by: test_doubling_cost
# mistake: rest_beyond_power_of_two
# %% doubling_cost: changed
# -         rounds += 2
# +         rounds += 1
