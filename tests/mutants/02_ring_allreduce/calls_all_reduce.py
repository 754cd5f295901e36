"""Calls the collective that was to be written."""
# caught by: test_ring_all_reduce
# mistake: ready_made
# %% ring_all_reduce
def ring_all_reduce(tensor):
    dist.all_reduce(tensor)
