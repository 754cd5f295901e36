"""Starts one chunk too far: the finished chunk of rank r is chunk r + 1."""
# caught by: test_ring_reduce_scatter
# mistake: wrong_place
# %% ring_reduce_scatter: changed
# -     chunks = [tensor[start:stop] for start, stop in pairwise(bounds)]
# +     chunks = [tensor[start:stop] for start, stop in zip(bounds, bounds[1:])]
# @@
# -         leaving, arriving = chunks[(rank - 1 - step) % n], chunks[(rank - 2 - step) % n]
# +         leaving, arriving = chunks[(rank - step) % n], chunks[(rank - 1 - step) % n]
# @@
# -     return chunks[rank]
# +     return chunks[(rank + 1) % n]
