"""Takes the tensor to float64 and back, which rounds large whole numbers."""
# caught by: test_ring_all_gather
# mistake: type_fixed
# says: int64
# %% ring_all_gather: changed
#           for work in dist.batch_isend_irecv(together):
#               work.wait()
# +     tensor.copy_(tensor.double())
