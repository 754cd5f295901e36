"""A gradient's place depends on what was put before it, which need not be the same on all ranks."""
# caught by: test_Bucket
# mistake: wrong_place
# says: the gradient of weight is
# %% Bucket: changed
# -         view = self.views[parameter]
# +         at = sum(p.numel() for p in self.parameters if p not in self.missing)
# +         view = self.flat[at : at + parameter.numel()].view_as(parameter)
