"""Sends elements and takes them for bytes."""
# caught by: test_largest_degree
# mistake: units
# says: the all-gather takes
# %% largest_degree
def largest_degree(flops, bandwidth, width, element):
    return 1 + math.floor(2 * width * bandwidth / flops)
