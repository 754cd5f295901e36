"""The neighbours are rank ^ 1 in turn with rank ^ 3: a ring of four, and of no other number."""
# caught by: test_ring_reduce_scatter
# mistake: some_ranks_only
# %% ring_reduce_scatter: changed
# -     for step in range(n - 1):
# +     ring = {2: [0, 1], 4: [0, 1, 2, 3]}.get(n, list(range(4)))
# +     for step in range(n - 1):
# @@
# -             dist.P2POp(dist.isend, leaving, (rank + 1) % n),
# -             dist.P2POp(dist.irecv, landing, (rank - 1) % n),
# +             dist.P2POp(dist.isend, leaving, ring[(rank + 1) % len(ring)]),
# +             dist.P2POp(dist.irecv, landing, ring[(rank - 1) % len(ring)]),
