"""Tries 64 ranks, and no more."""
# caught by: test_largest_degree
# mistake: search_too_short
# says: on 65 ranks it would hide too
# %% largest_degree: changed
# -     return 1 + math.floor(2 * width * bandwidth / (element * flops))
# +     return max(t for t in range(1, 65) if element * (t - 1) / bandwidth <= 2 * width / flops)
