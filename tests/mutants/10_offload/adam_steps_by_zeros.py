"""Steps a parameter without a gradient by zeros."""
# caught by: test_HostAdam
# mistake: without_gradient
# says: parameter 1
# %% HostAdam: changed
# -             master.grad = None
#               p.copy_(self.link.to_device(master.to(p.dtype)))
# +         for m in self.masters:
# +             m.grad = None if m.grad is None else torch.zeros_like(m)
