"""The chunk is in its place; what is returned is a copy of it and not a view."""
# caught by: test_ring_reduce_scatter
# mistake: copy_or_view
# says: is a copy
# %% ring_reduce_scatter: changed
# -     return chunks[rank]
# +     return chunks[rank].clone()
