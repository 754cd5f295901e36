"""Receives over its own numbers and adds what it sent before."""


# caught by: test_ring_reduce_scatter
# mistake: overwritten
# %% ring_reduce_scatter: changed
# -         landing = torch.empty_like(arriving)
# +         landing = arriving
