"""The nearest whole number."""
# caught by: test_largest_degree
# mistake: rounded_wrongly
# %% largest_degree: changed
# -     return 1 + math.floor(2 * width * bandwidth / (element * flops))
# +     return 1 + round(2 * width * bandwidth / (element * flops))
