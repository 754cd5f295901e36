"""The gradient becomes a piece of the buffer, one-dimensional, whatever the parameter's shape."""
# caught by: test_Bucket
# mistake: wrong_kind
# says: attempting to assign a gradient of size '[15]' to a tensor of size '[5, 3]'
# %% Bucket: changed
# -         self.views = {p: part.view_as(p) for p, part in zip(self.parameters, parts, strict=True)}
# +         self.views = dict(zip(self.parameters, parts, strict=True))
# @@
# -             view.copy_(parameter.grad)
# +             view.copy_(parameter.grad.flatten())
