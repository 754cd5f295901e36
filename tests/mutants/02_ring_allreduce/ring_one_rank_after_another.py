"""Rank 0 sends first and all others receive first: nothing hangs, and one message at a time goes round the ring."""


# caught by: test_ring_reduce_scatter
# mistake: no_overlap
# says: it takes 12 messages one after another, where 3 would do: ranks wait for their turn
# %% ring_reduce_scatter: changed
# -         together = [
# -             dist.P2POp(dist.isend, leaving, (rank + 1) % n),
# -             dist.P2POp(dist.irecv, landing, (rank - 1) % n),
# -         ]
# -         for work in dist.batch_isend_irecv(together):
# -             work.wait()
# +         if rank == 0:
# +             dist.send(leaving, dst=(rank + 1) % n)
# +             dist.recv(landing, src=(rank - 1) % n)
# +         else:
# +             dist.recv(landing, src=(rank - 1) % n)
# +             dist.send(leaving, dst=(rank + 1) % n)
