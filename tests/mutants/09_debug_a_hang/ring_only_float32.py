"""Receives into float32, whatever the tensor has."""
# caught by: test_ring_all_reduce
# mistake: type_fixed
# says: float64 numbers
# %% ring_all_reduce: changed
# -         landing = torch.empty_like(arriving)
# +         landing = torch.empty(arriving.numel())
