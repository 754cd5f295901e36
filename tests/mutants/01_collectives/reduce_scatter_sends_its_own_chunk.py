"""Sends its own chunk to everyone, not theirs."""


# caught by: test_reduce_scatter
# mistake: wrong_place
# says: the chunk is wrong
# %% reduce_scatter: changed
# -         exchange(chunks[dst], dst, landing, src)
# +         exchange(chunks[rank], dst, landing, src)
