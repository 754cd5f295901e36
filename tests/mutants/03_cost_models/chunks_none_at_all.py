"""Zero pieces, where one is the least there is."""
# caught by: test_best_chunks
# mistake: special_case
# %% best_chunks
def best_chunks(n, size, alpha, beta):
    return floor(sqrt((n - 2) * size * beta / alpha))
