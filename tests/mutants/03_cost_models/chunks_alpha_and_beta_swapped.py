"""Many pieces where latency is large."""
# caught by: test_best_chunks
# mistake: reversed
# %% best_chunks
def best_chunks(n, size, alpha, beta):
    return max(1, round(sqrt((n - 2) * alpha / (size * beta)))) if size else 1
