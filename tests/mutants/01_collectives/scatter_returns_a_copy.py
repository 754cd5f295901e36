"""Receives into new memory: what is returned is right, the tensor was not touched."""
# caught by: test_scatter
# %% scatter: changed
# -         dist.recv(chunks[rank], src=root)
# -         return chunks[rank]
# +         landing = torch.empty_like(chunks[rank])
# +         dist.recv(landing, src=root)
# +         return landing
