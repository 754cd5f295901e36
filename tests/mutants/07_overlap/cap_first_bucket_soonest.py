"""The cap whose first bucket arrives first."""
# caught by: test_best_cap
# mistake: rule_of_thumb
# says: with a cap of 1,000,000 bytes
# %% best_cap
def best_cap(backwards, sizes, caps, alpha, beta):
    return min(caps, key=lambda cap: all_reduces(backwards, sizes, cap, alpha, beta)[0][1])
