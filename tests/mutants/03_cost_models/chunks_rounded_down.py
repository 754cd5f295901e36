"""Always rounds down."""
# caught by: test_best_chunks
# mistake: rounded_wrongly
# %% best_chunks
def best_chunks(n, size, alpha, beta):
    return max(1, floor(sqrt((n - 2) * size * beta / alpha)))
