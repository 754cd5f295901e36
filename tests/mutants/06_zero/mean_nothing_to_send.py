"""A rank that has no gradient at all leaves the others waiting."""
# caught by: test_mean_gradient
# mistake: not_every_rank
# %% mean_gradient: changed
#       gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in flat.parameters]
# +     if all(p.grad is None for p in flat.parameters):
# +         return torch.zeros_like(flat.shard)
