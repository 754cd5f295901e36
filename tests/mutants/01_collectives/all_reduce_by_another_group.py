"""Zeros for the counters; the sum comes by a group that nobody records."""
# caught by: test_all_reduce
# mistake: uncounted_way
# says: raised RuntimeError: use the default process group: what travels by another group or a store is not counted
# %% all_reduce
def all_reduce(tensor):
    zeros = torch.zeros_like(tensor)
    reduce_scatter(zeros)
    all_gather(zeros)
    dist.all_reduce(tensor, group=dist.new_group(backend="gloo"))
