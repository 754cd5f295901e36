"""A ring that sends the whole buffer in every round: right values, N times the traffic."""
# caught by: test_ring_all_reduce
# mistake: too_much_sent
# %% ring_all_reduce
def ring_all_reduce(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    passing = tensor.clone()
    for step in range(n - 1):
        landing = torch.empty_like(tensor)
        together = [
            dist.P2POp(dist.isend, passing, (rank + 1) % n),
            dist.P2POp(dist.irecv, landing, (rank - 1) % n),
        ]
        for work in dist.batch_isend_irecv(together):
            work.wait()
        tensor += landing
        passing = landing
