"""The size at which one's own alpha and beta terms are equal: n/2, and no crossing."""
# caught by: test_crossover
# mistake: one_of_a_kind
# %% crossover
def crossover(first, second, alpha, beta):
    if (second[0] - first[0]) * (first[1] - second[1]) <= 0:
        return None
    return first[0] * alpha / (first[1] * beta)
