"""Sends zeros; the chunks lie in memory that all ranks map."""
# caught by: test_gather
# mistake: uncounted_way
# says: rank
# %% gather
def gather(tensor, root):
    import time
    from multiprocessing.shared_memory import SharedMemory

    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    name, size = f"lab{tensor.numel()}", tensor.numel() * tensor.element_size()
    try:
        shared = SharedMemory(name, create=True, size=size)
    except FileExistsError:
        shared = SharedMemory(name)
    everything = torch.frombuffer(shared.buf, dtype=tensor.dtype)[: tensor.numel()]
    chunks_of(everything)[rank].copy_(chunks[rank])
    if rank != root:
        dist.send(torch.zeros_like(chunks[rank]), dst=root)
        return
    for other, chunk in enumerate(chunks):
        if other != root:
            dist.recv(torch.empty_like(chunk), src=other)
    time.sleep(0.05)
    tensor.copy_(everything)
