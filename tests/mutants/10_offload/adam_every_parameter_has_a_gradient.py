"""A parameter without a gradient is an error."""
# caught by: test_HostAdam
# mistake: without_gradient
# says: 'NoneType' object has no attribute 'nbytes'
# %% HostAdam: changed
# -         stepped = [pair for pair in zip(self.parameters, self.masters, strict=True) if pair[0].grad is not None]
# +         stepped = list(zip(self.parameters, self.masters, strict=True))
