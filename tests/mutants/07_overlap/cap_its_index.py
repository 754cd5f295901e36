"""The place of the cap in the list."""
# caught by: test_best_cap
# mistake: one_of_a_kind
# says: which is none of the caps
# %% best_cap
def best_cap(backwards, sizes, caps, alpha, beta):
    return min(range(len(caps)), key=lambda i: all_reduces(backwards, sizes, caps[i], alpha, beta)[-1][1])
