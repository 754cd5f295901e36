"""On an odd number of ranks the whole buffers go round."""
# caught by: test_ring_reduce_scatter
# mistake: too_much_sent
# %% ring_reduce_scatter: changed
#       chunks = [tensor[start:stop] for start, stop in pairwise(bounds)]
# +     if n % 2:
# +         leaving = tensor.clone()
# +         for _ in range(n - 1):
# +             arriving = torch.empty_like(tensor)
# +             together = [
# +                 dist.P2POp(dist.isend, leaving, (rank + 1) % n),
# +                 dist.P2POp(dist.irecv, arriving, (rank - 1) % n),
# +             ]
# +             for work in dist.batch_isend_irecv(together):
# +                 work.wait()
# +             tensor += arriving
# +             leaving = arriving
# +         return chunks[rank]
