"""On an odd number of ranks the whole buffers go round."""
# caught by: test_ring_all_reduce
# mistake: too_much_sent
# %% ring_all_reduce
def ring_all_reduce(tensor):
    """Replace ``tensor`` on every rank by the sum over ranks."""
    rank, n = dist.get_rank(), dist.get_world_size()
    if n % 2 == 0:
        ring_reduce_scatter(tensor)
        ring_all_gather(tensor)
        return
    leaving = tensor.clone()
    for _ in range(n - 1):
        arriving = torch.empty_like(tensor)
        together = [
            dist.P2POp(dist.isend, leaving, (rank + 1) % n),
            dist.P2POp(dist.irecv, arriving, (rank - 1) % n),
        ]
        for work in dist.batch_isend_irecv(together):
            work.wait()
        tensor += arriving
        leaving = arriving
