"""The best real number, rounded to the nearest whole one: where the curve bends, that is the wrong one."""
# caught by: test_best_chunks
# mistake: rounded_wrongly
# %% best_chunks
def best_chunks(n, size, alpha, beta):
    return max(1, round(sqrt((n - 2) * size * beta / alpha)))
