"""Starts its exchanges and never waits for them."""
# caught by: test_all_gather
# mistake: never_waits
# %% all_gather
def all_gather(tensor):
    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    for k in range(1, n):
        dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, chunks[rank], (rank + k) % n),
                dist.P2POp(dist.irecv, chunks[(rank - k) % n], (rank - k) % n),
            ]
        )
