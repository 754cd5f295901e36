"""torch's all-reduce where the ring was to be mended."""
# caught by: test_ring_all_reduce
# mistake: ready_made
# %% ring_all_reduce
def ring_all_reduce(tensor):
    dist.all_reduce(tensor)
