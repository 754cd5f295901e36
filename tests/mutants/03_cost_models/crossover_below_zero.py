"""Returns a size below 0 where one cost is worse in both."""
# caught by: test_crossover
# mistake: special_case
# %% crossover
def crossover(first, second, alpha, beta):
    if first[1] == second[1]:
        return None
    return (second[0] - first[0]) * alpha / ((first[1] - second[1]) * beta)
