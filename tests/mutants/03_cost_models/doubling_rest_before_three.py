"""The rest waits from 6 ranks on: 3 and 5 are taken for the power of two below."""
# caught by: test_doubling_cost
# mistake: rest_beyond_power_of_two
# %% doubling_cost
def doubling_cost(n):
    from math import log2

    rounds = n.bit_length() - 1
    rounds += 2 * (round(log2(n)) > rounds)
    return rounds, float(rounds)
