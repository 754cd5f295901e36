"""Sends zeros; the root's tensor comes by the default store."""
# caught by: test_broadcast
# mistake: uncounted_way
# says: raised RuntimeError: use the default process group: what travels by another group or a store is not counted
# %% broadcast
def broadcast(tensor, root):
    rank, n = dist.get_rank(), dist.get_world_size()
    zeros, store = torch.zeros_like(tensor), dist.distributed_c10d._get_default_store()
    if rank == root:
        store.set("tensor", tensor.view(torch.uint8).numpy().tobytes())
        for other in range(n):
            if other != root:
                dist.send(zeros, dst=other)
    else:
        dist.recv(zeros, src=root)
        tensor.copy_(torch.frombuffer(bytearray(store.get("tensor")), dtype=tensor.dtype))
