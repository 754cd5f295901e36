"""Sets the gradients to zeros, not to None."""


# caught by: test_mean_gradient
# mistake: kept_in_memory
# says: still has its .grad: set it to None
# %% mean_gradient: changed
# -         p.grad = None
# +         if p.grad is not None:
# +             p.grad = torch.zeros_like(p.grad)
