"""Always the smallest: most overlap."""
# caught by: test_best_cap
# mistake: rule_of_thumb
# says: with a cap of 1,000,000 bytes
# %% best_cap
def best_cap(backwards, sizes, caps, alpha, beta):
    return min(caps)
