"""Leaves alpha out."""
# caught by: test_best_cap
# mistake: part_missing
# %% best_cap: changed
# -     return min(caps, key=lambda cap: all_reduces(backwards, sizes, cap, alpha, beta)[-1][1])
# +     return min(caps, key=lambda cap: all_reduces(backwards, sizes, cap, 0.0, beta)[-1][1])
