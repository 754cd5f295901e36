"""A number of ranks that is not whole."""
# caught by: test_largest_degree
# mistake: rounded_wrongly
# says: not a whole number from 1
# %% largest_degree
def largest_degree(flops, bandwidth, width, element):
    return 1 + 2 * width * bandwidth / (element * flops)
