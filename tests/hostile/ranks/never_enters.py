"""Rank 1 never enters a collective; ranks enter different ones; one is inside ``if rank == 0``."""


# verdict: limit
# says: no end after
# %% first
# says: rank 1 never entered all_reduce #1; rank 0 waits there
def first(tensor):
    if dist.get_rank() != 1:
        dist.all_reduce(tensor)
    return tensor


# %% second
# says: all_reduce
# says: broadcast
def second(tensor):
    if dist.get_rank() == 0:
        dist.all_reduce(tensor)
    else:
        dist.broadcast(tensor, 0)
    return tensor


# %% third
# says: rank 0
def third(tensor):
    dist.all_reduce(tensor)
    if dist.get_rank() == 0:
        dist.barrier()
    return tensor
