"""Parameters without a gradient are left out of the vector."""


# caught by: test_mean_gradient
# mistake: without_gradient
# %% mean_gradient: changed
# -     gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in flat.parameters]
# +     gradients = [p.grad for p in flat.parameters if p.grad is not None]
