"""The root itself."""
# caught by: test_best_chunks
# mistake: rounded_wrongly
# %% best_chunks
def best_chunks(n, size, alpha, beta):
    return max(1.0, sqrt((n - 2) * size * beta / alpha))
