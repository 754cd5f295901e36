"""Reduces the parameters instead of their gradients."""


# caught by: test_mean_gradient
# mistake: parameters_for_gradients
# says: the shard is of the parameters, not of their gradients
# %% mean_gradient: changed
# -     gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in flat.parameters]
# +     gradients = [p.detach() for p in flat.parameters]
