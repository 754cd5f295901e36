"""Receives into float32, whatever the tensor is."""
# caught by: test_reduce
# mistake: type_fixed
# %% reduce
def reduce(tensor, root):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != root:
        dist.send(tensor.float(), dst=root)
        return
    for other in range(n):
        if other != root:
            landing = torch.empty(tensor.numel())
            dist.recv(landing, src=other)
            tensor += landing.to(tensor.dtype)
