"""On an odd number of ranks every rank sends first."""
# caught by: test_ring_all_gather
# mistake: all_send_first
# %% ring_all_gather: changed
# -         together = [
# -             dist.P2POp(dist.isend, chunks[(rank - step) % n], (rank + 1) % n),
# -             dist.P2POp(dist.irecv, chunks[(rank - 1 - step) % n], (rank - 1) % n),
# -         ]
# -         for work in dist.batch_isend_irecv(together):
# -             work.wait()
# +         if n % 2 == 0 and rank % 2:
# +             dist.recv(chunks[(rank - 1 - step) % n], (rank - 1) % n)
# +             dist.send(chunks[(rank - step) % n], (rank + 1) % n)
# +         else:
# +             dist.send(chunks[(rank - step) % n], (rank + 1) % n)
# +             dist.recv(chunks[(rank - 1 - step) % n], (rank - 1) % n)
