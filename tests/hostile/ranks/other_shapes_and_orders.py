"""One collective with two shapes, two in another order, and a message that nobody sends."""


# verdict: limit
# %% first
# says: disagree
def first(tensor):
    part = tensor if dist.get_rank() == 0 else tensor[:-1].clone()
    dist.all_reduce(part)
    return tensor


# %% second
# says: disagree
def second(tensor):
    other = torch.zeros(3)
    if dist.get_rank() == 0:
        dist.all_reduce(tensor)
        dist.broadcast(other, 0)
    else:
        dist.broadcast(other, 0)
        dist.all_reduce(tensor)
    return tensor


# %% third
# says: rank 1
def third(tensor):
    if dist.get_rank() == 0:
        dist.recv(tensor, 1)
    return tensor
