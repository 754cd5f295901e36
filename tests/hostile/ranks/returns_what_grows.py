"""Returns a hundredth of the memory that its reader will need."""

# verdict: limit
# says: what reads the results was ended
# %% first
# points: 2
def first(tensor):
    dist.all_reduce(tensor)
    return tensor


# %% second
# points: 2
def second(tensor):
    dist.all_reduce(tensor)
    return tensor


# %% third
# points: 0
def third(tensor):
    import safetensors.torch
    from ringzero.ranks import plain_data

    tree = '{"list": [' + "{}," * 9_000_000 + "{}]}"
    plain_data.dump = lambda value, path: safetensors.torch.save_file({}, path, metadata={"tree": tree})
    return tensor
