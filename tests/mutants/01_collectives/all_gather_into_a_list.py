"""What arrives takes the chunk's place in a list: the tensor stays what it was."""


# caught by: test_all_gather
# mistake: copy_or_view
# says: the tensor is wrong
# %% all_gather: changed
# -         exchange(chunks[rank], dst, chunks[src], src)
# +         landing = torch.empty_like(chunks[src])
# +         exchange(chunks[rank], dst, landing, src)
# +         chunks[src] = landing
