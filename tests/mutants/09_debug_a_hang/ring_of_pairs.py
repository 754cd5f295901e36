"""Each rank swaps with its partner: a sum over two ranks."""
# caught by: test_ring_all_reduce
# mistake: some_ranks_only
# %% ring_all_reduce
def ring_all_reduce(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    partner = rank ^ 1
    if partner < n:
        theirs = torch.empty_like(tensor)
        together = [dist.P2POp(dist.isend, tensor.clone(), partner), dist.P2POp(dist.irecv, theirs, partner)]
        for work in dist.batch_isend_irecv(together):
            work.wait()
        tensor += theirs
