"""Starts its messages and never waits for them."""
# caught by: test_broadcast
# %% broadcast
def broadcast(tensor, root):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == root:
        for other in range(n):
            if other != root:
                dist.isend(tensor, dst=other)
    else:
        dist.irecv(tensor, src=root)
