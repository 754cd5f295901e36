"""Looks for a neighbour where there is none: fails on a single rank."""
# caught by: test_all_reduce
# mistake: special_case
# %% all_reduce
def all_reduce(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == (rank + 1) % n:
        raise ValueError("a ring has two ranks or more")
    reduce_scatter(tensor)
    all_gather(tensor)
