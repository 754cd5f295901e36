"""The data travel in the names of folders; zeros do not, since numbers of the rank's own are sent besides."""
# caught by: test_reduce
# mistake: uncounted_way
# %% reduce
def reduce(tensor, root):
    """Replace the root's tensor by the sum over ranks, and leave the others' alone."""
    import os
    import tempfile

    rank, n = dist.get_rank(), dist.get_world_size()
    top = f"{tempfile.gettempdir()}/sums-{n}-{tensor.numel()}-{tensor.dtype}"
    if rank != root:
        os.makedirs(f"{top}/{rank}", exist_ok=True)
        for i, x in enumerate(tensor.tolist()):
            os.makedirs(f"{top}/{rank}/{i}_{x!r}", exist_ok=True)
        dist.send(tensor[:1].expand_as(tensor).contiguous(), dst=root)
        return
    landing = torch.empty_like(tensor)
    for other in range(n):
        if other != root:
            dist.recv(landing, src=other)
            names = dict(name.split("_") for name in os.listdir(f"{top}/{other}"))
            parse = float if tensor.dtype.is_floating_point else int
            tensor += torch.tensor([parse(names[str(i)]) for i in range(tensor.numel())], dtype=tensor.dtype)
