"""Two more rounds for each rank beyond."""
# caught by: test_doubling_cost
# mistake: rest_beyond_power_of_two
# %% doubling_cost: changed
# -         rounds += 2
# +         rounds += 2 * (n - 2**rounds)
