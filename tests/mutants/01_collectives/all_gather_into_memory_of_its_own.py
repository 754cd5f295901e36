"""Gathers into new memory and lets the tensor point there: the caller's memory stays what it was."""
# caught by: test_all_gather
# mistake: wrong_place
# %% all_gather
def all_gather(tensor):
    """Fill ``tensor`` on every rank with rank r's chunk r, for all r."""
    rank, n = dist.get_rank(), dist.get_world_size()
    own = [chunk.clone() for chunk in chunks_of(tensor)]
    for k in range(1, n):
        dst, src = (rank + k) % n, (rank - k) % n
        exchange(own[rank], dst, own[src], src)
    tensor.data = torch.cat(own)
