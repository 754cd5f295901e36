"""Tries 1 to 100 and stops."""
# caught by: test_best_chunks
# mistake: search_too_short
# %% best_chunks
def best_chunks(n, size, alpha, beta):
    return min(range(1, 101), key=lambda k: (n - 2 + k) * (alpha + size * beta / k))
