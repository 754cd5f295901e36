"""The cap whose last all-reduce begins first, however long it takes."""
# caught by: test_best_cap
# mistake: rule_of_thumb
# says: the step ends after
# %% best_cap
def best_cap(backwards, sizes, caps, alpha, beta):
    return min(caps, key=lambda cap: (all_reduces(backwards, sizes, cap, alpha, beta)[-1][0], -cap))
