"""Receives into the tensor itself, so the last message is all that is left."""
# caught by: test_reduce
# %% reduce
def reduce(tensor, root):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != root:
        dist.send(tensor, dst=root)
        return
    for other in range(n):
        if other != root:
            dist.recv(tensor, src=other)
