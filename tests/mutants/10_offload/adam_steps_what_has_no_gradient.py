"""A parameter without a gradient gets one of zeros, and is copied."""


# caught by: test_HostAdam
# mistake: without_gradient
# says: after step 1 parameter 2 is wrong in every element
# %% HostAdam: changed
# -         stepped = [pair for pair in zip(self.parameters, self.masters, strict=True) if pair[0].grad is not None]
# +         stepped = list(zip(self.parameters, self.masters, strict=True))
# +         for p in self.parameters:
# +             p.grad = torch.zeros_like(p) if p.grad is None else p.grad
