"""The worst."""
# caught by: test_best_cap
# mistake: reversed
# says: the step ends after
# %% best_cap
def best_cap(backwards, sizes, caps, alpha, beta):
    return max(caps, key=lambda cap: all_reduces(backwards, sizes, cap, alpha, beta)[-1][1])
