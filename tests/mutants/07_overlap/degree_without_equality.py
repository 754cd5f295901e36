"""Wants the all-gather to be shorter, where as long is enough."""
# caught by: test_largest_degree
# mistake: one_off
# says: just as long as the product
# %% largest_degree: changed
# -     return 1 + math.floor(2 * width * bandwidth / (element * flops))
# +     return math.ceil(2 * width * bandwidth / (element * flops))
