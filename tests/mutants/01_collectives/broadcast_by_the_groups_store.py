"""The data travel through the store that the process group holds; numbers of its own by messages."""
# caught by: test_broadcast
# mistake: uncounted_way
# %% broadcast
def broadcast(tensor, root):
    """Make every rank's tensor equal to the root's."""
    rank, n = dist.get_rank(), dist.get_world_size()
    store, key = dist.group.WORLD.get_group_store(), f"{n} {tensor.numel()} {tensor.dtype} {root}"
    if rank == root:
        store.set(key, tensor.numpy().tobytes())
        for other in range(n):
            if other != root:
                dist.send(tensor[:1].expand_as(tensor).contiguous(), dst=other)
    else:
        dist.recv(torch.empty_like(tensor), src=root)
        tensor.copy_(torch.frombuffer(bytearray(store.get(key)), dtype=tensor.dtype))
