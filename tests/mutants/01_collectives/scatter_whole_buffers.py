"""Sends everyone the whole buffer: it holds the right chunk, and everything else too."""
# caught by: test_scatter
# mistake: too_much_sent
# %% scatter
def scatter(tensor, root):
    rank = dist.get_rank()
    whole = tensor.clone()
    broadcast(whole, root)
    mine = chunks_of(tensor)[rank]
    mine.copy_(chunks_of(whole)[rank])
    return mine
