"""Calls the all-reduce that was to be written."""
# caught by: test_all_reduce
# %% all_reduce
def all_reduce(tensor):
    dist.all_reduce(tensor)
