"""Takes it that the first has fewer rounds."""
# caught by: test_crossover
# mistake: special_case
# %% crossover
def crossover(first, second, alpha, beta):
    if second[0] <= first[0] or second[1] >= first[1]:
        return None
    return (second[0] - first[0]) * alpha / ((first[1] - second[1]) * beta)
