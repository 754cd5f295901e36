"""Tries numbers of pieces up to 10,000 and no further."""
# caught by: test_best_chunks
# mistake: search_too_short
# %% best_chunks
def best_chunks(n, size, alpha, beta):
    """The number of pieces (a whole number from 1) with which a chain of ``n`` ranks broadcasts fastest."""
    return min(range(1, 10_000), key=lambda k: (n - 2 + k) * (alpha + size * beta / k))
