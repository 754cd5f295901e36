"""Gather and broadcast: right values, all of it through rank 0."""
# caught by: test_all_gather
# mistake: other_algorithm
# %% all_gather
def all_gather(tensor):
    gather(tensor, 0)
    broadcast(tensor, 0)
