"""On an odd number of ranks each sends its chunk to all others: no ring."""
# caught by: test_ring_all_gather
# mistake: other_algorithm
# %% ring_all_gather: changed
#       chunks = [tensor[start:stop] for start, stop in pairwise(bounds)]
# +     if n % 2:
# +         together = [dist.P2POp(dist.isend, chunks[rank], (rank + k) % n) for k in range(1, n)]
# +         together += [dist.P2POp(dist.irecv, chunks[(rank - k) % n], (rank - k) % n) for k in range(1, n)]
# +         for work in dist.batch_isend_irecv(together) if n > 1 else ():
# +             work.wait()
# +         return
