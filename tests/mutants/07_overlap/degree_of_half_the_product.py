"""wth FLOP for 2thw."""
# caught by: test_largest_degree
# mistake: part_missing
# %% largest_degree: changed
# -     return 1 + math.floor(2 * width * bandwidth / (element * flops))
# +     return 1 + math.floor(width * bandwidth / (element * flops))
