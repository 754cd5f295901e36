"""Calls the all-reduce that was to be written."""
# caught by: test_all_reduce
# mistake: ready_made
# %% all_reduce
def all_reduce(tensor):
    dist.all_reduce(tensor)
