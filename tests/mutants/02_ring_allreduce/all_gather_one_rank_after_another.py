"""Rank 0 sends first and all others receive first: one message at a time goes round the ring."""


# caught by: test_ring_all_gather
# mistake: no_overlap
# says: it takes 12 messages one after another, where 3 would do: ranks wait for their turn
# %% ring_all_gather: changed
# -         together = [
# -             dist.P2POp(dist.isend, chunks[(rank - step) % n], (rank + 1) % n),
# -             dist.P2POp(dist.irecv, chunks[(rank - 1 - step) % n], (rank - 1) % n),
# -         ]
# -         for work in dist.batch_isend_irecv(together):
# -             work.wait()
# +         leaving, arriving = chunks[(rank - step) % n], chunks[(rank - 1 - step) % n]
# +         if rank == 0:
# +             dist.send(leaving, dst=(rank + 1) % n)
# +             dist.recv(arriving, src=(rank - 1) % n)
# +         else:
# +             dist.recv(arriving, src=(rank - 1) % n)
# +             dist.send(leaving, dst=(rank + 1) % n)
