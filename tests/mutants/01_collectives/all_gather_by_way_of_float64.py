"""Takes the tensor to float64 and back, which rounds large whole numbers."""
# caught by: test_all_gather
# mistake: type_fixed
# says: int64
# %% all_gather: changed
#           exchange(chunks[rank], dst, chunks[src], src)
# +     tensor.copy_(tensor.double())
