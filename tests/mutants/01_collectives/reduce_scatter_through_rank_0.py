"""Reduce and scatter: right values, all of it through rank 0."""
# caught by: test_reduce_scatter
# mistake: other_algorithm
# %% reduce_scatter
def reduce_scatter(tensor):
    reduce(tensor, 0)
    return scatter(tensor, 0)
