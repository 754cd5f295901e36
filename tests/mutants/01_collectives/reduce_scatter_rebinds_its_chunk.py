"""The sum takes the chunk's place in the list, not in the tensor."""


# caught by: test_reduce_scatter
# mistake: copy_or_view
# says: the tensor's own chunk is wrong
# %% reduce_scatter: changed
# -         chunks[rank] += landing
# +         chunks[rank] = chunks[rank] + landing
