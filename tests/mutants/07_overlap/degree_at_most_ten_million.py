"""Halves between 1 and ten million."""
# caught by: test_largest_degree
# mistake: search_too_short
# %% largest_degree: changed
# -     return 1 + math.floor(2 * width * bandwidth / (element * flops))
# +     return min(10_000_000, 1 + math.floor(2 * width * bandwidth / (element * flops)))
