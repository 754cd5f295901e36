"""Receives into new memory and lets the tensor point there."""
# caught by: test_broadcast
# mistake: wrong_place
# %% broadcast
def broadcast(tensor, root):
    """Make every rank's tensor equal to the root's."""
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == root:
        for other in range(n):
            if other != root:
                dist.send(tensor, dst=other)
    else:
        landing = torch.empty_like(tensor)
        dist.recv(landing, src=root)
        tensor.data = landing
