"""NameError: chunk for chunks, in the last line."""
# caught by: test_ring_reduce_scatter
# mistake: code_error
# says: raised NameError: name 'chunk' is not defined
# %% ring_reduce_scatter: changed
# -     return chunks[rank]
# +     return chunk[rank]
