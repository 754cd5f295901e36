"""Puts what arrived into its place by way of float64, which rounds large whole numbers."""
# caught by: test_gather
# mistake: type_fixed
# says: int64
# %% gather: changed
# -             dist.recv(chunk, src=other)
# +             landing = torch.empty(len(chunk), dtype=tensor.dtype)
# +             dist.recv(landing, src=other)
# +             chunk.copy_(landing.double())
