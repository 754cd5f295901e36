"""Receives into new memory: what is returned is right, the tensor was not touched."""
# caught by: test_scatter
# mistake: copy_or_view
# %% scatter: changed
# -         dist.recv(chunks[rank], src=root)
# -         return chunks[rank]
# +         landing = torch.empty_like(chunks[rank])
# +         dist.recv(landing, src=root)
# +         return landing
