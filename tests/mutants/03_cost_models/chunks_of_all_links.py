"""N-1 links for the N-2 rounds that fill the pipe."""
# caught by: test_best_chunks
# mistake: one_off
# %% best_chunks
def best_chunks(n, size, alpha, beta):
    return max(1, round(sqrt((n - 1) * size * beta / alpha)))
