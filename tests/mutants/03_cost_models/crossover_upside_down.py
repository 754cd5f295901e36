"""Divides beta by alpha."""
# caught by: test_crossover
# %% crossover
def crossover(first, second, alpha, beta):
    more_rounds, less_share = second[0] - first[0], first[1] - second[1]
    if more_rounds * less_share <= 0:
        return None
    return more_rounds * beta / (less_share * alpha)
