"""Numbers of two bytes, whatever they have."""
# caught by: test_largest_degree
# mistake: argument_ignored
# says: ranks
# %% largest_degree: changed
# -     return 1 + math.floor(2 * width * bandwidth / (element * flops))
# +     return 1 + math.floor(width * bandwidth / flops)
