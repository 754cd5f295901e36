"""Returns the root's tensor and leaves the rank's own as it was."""
# caught by: test_broadcast
# %% broadcast
def broadcast(tensor, root):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == root:
        for other in range(n):
            if other != root:
                dist.send(tensor, dst=other)
        return tensor
    landing = torch.empty_like(tensor)
    dist.recv(landing, src=root)
    return landing
