"""The cap next to torch's 25 MB."""
# caught by: test_best_cap
# mistake: rule_of_thumb
# says: with a cap of 16,000,000 bytes
# %% best_cap
def best_cap(backwards, sizes, caps, alpha, beta):
    return min(caps, key=lambda cap: abs(cap - 25 * 2**20))
