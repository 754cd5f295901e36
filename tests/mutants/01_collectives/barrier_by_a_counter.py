"""Sends its tokens to and fro for the counters; the ranks count each other in a store."""
# caught by: test_barrier
# mistake: uncounted_way
# says: raised RuntimeError: use the default process group: what travels by another group or a store is not counted
# %% barrier
def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    token, landing = torch.zeros(1), torch.empty(1)
    for _ in range((n - 1).bit_length()):
        exchange(token, (rank + 1) % n, landing, (rank - 1) % n)
    store = dist.distributed_c10d._get_default_store()
    store.add("came", 1)
    while store.add("came", 0) % n:
        pass
