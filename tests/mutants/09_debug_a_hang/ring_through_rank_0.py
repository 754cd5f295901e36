"""Everything goes to rank 0 and back: no hang, and no ring."""
# caught by: test_ring_all_reduce
# mistake: other_algorithm
# %% ring_all_reduce
def ring_all_reduce(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        for other in range(1, n):
            landing = torch.empty_like(tensor)
            dist.recv(landing, src=other)
            tensor += landing
        for other in range(1, n):
            dist.send(tensor, dst=other)
    else:
        dist.send(tensor, dst=0)
        dist.recv(tensor, src=0)
