"""A tree's two ways for an exchange that has one."""
# caught by: test_doubling_cost
# mistake: counted_twice
# %% doubling_cost
def doubling_cost(n):
    rounds = 2 * (n - 1).bit_length()
    return rounds, float(rounds)
