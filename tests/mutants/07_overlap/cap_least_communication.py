"""The cap with the fewest seconds of communication."""
# caught by: test_best_cap
# mistake: rule_of_thumb
# says: with a cap of 64,000,000 bytes
# %% best_cap
def best_cap(backwards, sizes, caps, alpha, beta):
    return min(caps, key=lambda cap: sum(end - begin for begin, end in all_reduces(backwards, sizes, cap, alpha, beta)))
