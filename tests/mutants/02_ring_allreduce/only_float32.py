"""Adds in float32 whatever the tensor holds: float64 and int64 lose their low bits."""
# caught by: test_ring_reduce_scatter
# mistake: type_fixed
# %% ring_reduce_scatter: changed
# -     chunks = [tensor[start:stop] for start, stop in pairwise(bounds)]
# +     whole = tensor.float()
# +     chunks = [whole[start:stop] for start, stop in zip(bounds, bounds[1:])]
# @@
# -     return chunks[rank]
# +     mine = tensor[bounds[rank] : bounds[rank + 1]]
# +     mine.copy_(chunks[rank])
# +     return mine
