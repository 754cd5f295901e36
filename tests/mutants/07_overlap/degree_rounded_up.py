"""Rounds up: the last rank is one too many."""
# caught by: test_largest_degree
# mistake: rounded_wrongly
# says: times as long as the product
# %% largest_degree
def largest_degree(flops, bandwidth, width, element):
    return 1 + math.ceil(2 * width * bandwidth / (element * flops))
