"""Rounds the logarithm up and calls it done."""
# caught by: test_doubling_cost
# mistake: rounded_wrongly
# %% doubling_cost
def doubling_cost(n):
    rounds = (n - 1).bit_length()
    return rounds, float(rounds)
