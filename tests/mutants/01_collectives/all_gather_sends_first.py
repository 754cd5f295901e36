"""Every rank sends before it receives: gloo's buffers forgive it, NCCL hangs."""
# caught by: test_all_gather
# mistake: all_send_first
# %% all_gather
def all_gather(tensor):
    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    for k in range(1, n):
        sending = dist.isend(chunks[rank], (rank + k) % n)
        dist.recv(chunks[(rank - k) % n], (rank - k) % n)
        sending.wait()
