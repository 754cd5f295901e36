"""The broken ring, handed in under the new name: right for two ranks."""
# caught by: test_ring_all_reduce
# mistake: some_ranks_only
# %% ring_all_reduce
def ring_all_reduce(tensor):
    broken_ring(tensor)
