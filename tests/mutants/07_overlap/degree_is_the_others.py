"""Counts the ranks from which it receives, and not the rank itself."""
# caught by: test_largest_degree
# mistake: one_off
# says: it would hide too
# %% largest_degree
def largest_degree(flops, bandwidth, width, element):
    return max(1, math.floor(2 * width * bandwidth / (element * flops)))
