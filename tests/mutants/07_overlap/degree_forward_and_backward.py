"""Compares with three products, those of the backward pass too."""
# caught by: test_largest_degree
# mistake: counted_twice
# says: the all-gather takes
# %% largest_degree
def largest_degree(flops, bandwidth, width, element):
    return 1 + math.floor(6 * width * bandwidth / (element * flops))
