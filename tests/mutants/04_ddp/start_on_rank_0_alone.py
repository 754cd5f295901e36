"""Rank 0 broadcasts, the others do not: "it is rank 0 that has something to say"."""
# caught by: test_start_alike
# mistake: not_every_rank
# says: 3, 4 never entered broadcast #1
# %% start_alike
def start_alike(module):
    if dist.get_rank() == 0:
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.detach(), src=0)
