"""Rings of zeros for the counters; the sum comes by a group that nobody records."""
# caught by: test_ring_all_reduce
# mistake: uncounted_way
# says: raised RuntimeError: use the default process group: what travels by another group or a store is not counted
# %% ring_all_reduce
def ring_all_reduce(tensor):
    zeros = torch.zeros_like(tensor)
    ring_reduce_scatter(zeros)
    ring_all_gather(zeros)
    dist.all_reduce(tensor, group=dist.new_group(backend="gloo"))
