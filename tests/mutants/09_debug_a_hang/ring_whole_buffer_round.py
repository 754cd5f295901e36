"""The whole buffer goes round."""
# caught by: test_ring_all_reduce
# mistake: too_much_sent
# %% ring_all_reduce
def ring_all_reduce(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    leaving = tensor.clone()
    for _ in range(n - 1):
        arriving = torch.empty_like(leaving)
        together = [dist.P2POp(dist.isend, leaving, (rank + 1) % n), dist.P2POp(dist.irecv, arriving, (rank - 1) % n)]
        for work in dist.batch_isend_irecv(together):
            work.wait()
        tensor += arriving
        leaving = arriving
