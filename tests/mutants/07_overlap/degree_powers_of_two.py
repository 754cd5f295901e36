"""Allows powers of two only."""
# caught by: test_largest_degree
# mistake: rounded_wrongly
# says: it would hide too
# %% largest_degree
def largest_degree(flops, bandwidth, width, element):
    return 2 ** math.floor(math.log2(1 + 2 * width * bandwidth / (element * flops)))
