"""Reduce and broadcast: right values, all of it through rank 0."""
# caught by: test_all_reduce
# mistake: other_algorithm
# %% all_reduce
def all_reduce(tensor):
    reduce(tensor, 0)
    broadcast(tensor, 0)
