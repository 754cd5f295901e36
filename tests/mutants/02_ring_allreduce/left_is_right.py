"""A sign: it receives from the rank that it sends to, which is right for two ranks."""
# caught by: test_ring_all_gather
# mistake: wrong_place
# says: has posted a receive, from rank
# %% ring_all_gather: changed
# -             dist.P2POp(dist.irecv, chunks[(rank - 1 - step) % n], (rank - 1) % n),
# +             dist.P2POp(dist.irecv, chunks[(rank - 1 - step) % n], (rank + 1) % n),
