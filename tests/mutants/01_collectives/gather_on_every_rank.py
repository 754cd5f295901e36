"""Everyone gathers: the root's result is right, the others' tensors are not what they were."""
# caught by: test_gather
# mistake: changes_its_input
# %% gather
def gather(tensor, root):
    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    for k in range(1, n):
        exchange(chunks[rank], (rank + k) % n, chunks[(rank - k) % n], (rank - k) % n)
