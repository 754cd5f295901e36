"""Each chunk leaves in two messages, so it takes twice the rounds."""
# caught by: test_ring_all_gather
# mistake: one_of_a_kind
# says: messages, where 3 would do
# %% ring_all_gather: changed
# -         together = [
# -             dist.P2POp(dist.isend, chunks[(rank - step) % n], (rank + 1) % n),
# -             dist.P2POp(dist.irecv, chunks[(rank - 1 - step) % n], (rank - 1) % n),
# -         ]
# -         for work in dist.batch_isend_irecv(together):
# -             work.wait()
# +         for half in range(2):
# +             together = [
# +                 dist.P2POp(dist.isend, chunks[(rank - step) % n].tensor_split(2)[half], (rank + 1) % n),
# +                 dist.P2POp(dist.irecv, chunks[(rank - 1 - step) % n].tensor_split(2)[half], (rank - 1) % n),
# +             ]
# +             for work in dist.batch_isend_irecv(together):
# +                 work.wait()
