"""Returns what is no sum: NaN, another type, far too much."""


# verdict: limit
# says: MEMORY LIMIT
# %% first
# points: 0
def first(tensor):
    dist.all_reduce(tensor)
    tensor *= float("nan")


# %% second
# points: 2
def second(tensor):
    dist.all_reduce(tensor)
    return {"sum": [tensor, {"deep": [[[[tensor]]]]}]}


# %% third
# points: 0
def third(tensor):
    dist.all_reduce(tensor)
    return torch.zeros(300_000_000)
