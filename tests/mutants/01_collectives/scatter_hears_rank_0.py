"""The others listen to rank 0, whoever the root is."""
# caught by: test_scatter
# mistake: rank_0_for_root
# says: a rank sends to itself, or receives from itself
# %% scatter: changed
# -         dist.recv(chunks[rank], src=root)
# +         dist.recv(chunks[rank], src=0)
