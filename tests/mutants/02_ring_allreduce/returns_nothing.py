"""The sum is in its place in the tensor; the return is forgotten."""
# caught by: test_ring_reduce_scatter
# mistake: wrong_kind
# says: the chunk is None, not a tensor: does it return nothing?
# %% ring_reduce_scatter: changed
# -     return chunks[rank]
