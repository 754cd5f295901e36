"""Works on a copy and lets the tensor point to it: the caller's memory stays what it was."""
# caught by: test_all_reduce
# mistake: wrong_place
# %% all_reduce
def all_reduce(tensor):
    """Replace ``tensor`` on every rank by the sum over ranks."""
    copy = tensor.clone()
    reduce_scatter(copy)
    all_gather(copy)
    tensor.set_(copy)
