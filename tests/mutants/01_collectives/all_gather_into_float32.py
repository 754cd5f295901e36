"""Receives into float32, whatever the tensor is."""
# caught by: test_all_gather
# mistake: type_fixed
# %% all_gather: changed
# -         exchange(chunks[rank], dst, chunks[src], src)
# +         landing = torch.empty(chunks[src].numel())
# +         exchange(chunks[rank].float(), dst, landing, src)
# +         chunks[src].copy_(landing)
