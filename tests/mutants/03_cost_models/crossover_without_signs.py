"""abs() of both differences: finds a size also where one cost is worse in both."""
# caught by: test_crossover
# mistake: special_case
# %% crossover
def crossover(first, second, alpha, beta):
    if first[1] == second[1] or first[0] == second[0]:
        return None
    return abs(second[0] - first[0]) * alpha / (abs(first[1] - second[1]) * beta)
