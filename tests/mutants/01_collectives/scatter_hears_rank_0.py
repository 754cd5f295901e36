"""The others listen to rank 0, whoever the root is."""
# caught by: test_scatter
# says: x
# %% scatter: changed
# -         dist.recv(chunks[rank], src=root)
# +         dist.recv(chunks[rank], src=0)
