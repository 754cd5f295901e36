"""Sends zeros along the chain; the root's tensor comes by the default store."""
# caught by: test_pipelined_broadcast
# mistake: uncounted_way
# says: raised RuntimeError: use the default process group: what travels by another group or a store is not counted
# %% pipelined_broadcast
def pipelined_broadcast(tensor, root, chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - root) % n
    zeros = torch.zeros_like(tensor)
    for start, stop in pairwise(chunk_bounds(tensor.numel(), chunks).tolist()):
        if place > 0:
            dist.recv(zeros[start:stop], src=(rank - 1) % n)
        if place < n - 1:
            dist.send(zeros[start:stop], dst=(rank + 1) % n)
    store = dist.distributed_c10d._get_default_store()
    if rank == root:
        store.set("tensor", tensor.numpy().tobytes())
    tensor.copy_(torch.frombuffer(bytearray(store.get("tensor")), dtype=tensor.dtype))
