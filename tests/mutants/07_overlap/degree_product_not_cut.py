"""Gives each rank the whole product."""
# caught by: test_largest_degree
# mistake: stages_mixed_up
# says: on 1000 ranks the all-gather takes
# %% largest_degree
def largest_degree(flops, bandwidth, width, element):
    ratio = element * flops / (2 * width * bandwidth)  # times (T - 1) / T
    return 1_000 if ratio <= 1 else math.floor(ratio / (ratio - 1))
