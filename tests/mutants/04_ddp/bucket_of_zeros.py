"""Points the gradient at the buffer before it has copied it there: all zeros, on every rank the same."""
# caught by: test_Bucket
# mistake: zeros
# %% Bucket: changed
# -         self.views = {p: part.view_as(p) for p, part in zip(self.parameters, parts, strict=True)}
# +         self.views = {p: part.view_as(p) for p, part in zip(self.parameters, parts)}
# @@
# -         """Take the parameter's gradient in; from now on ``parameter.grad`` is a view of ``flat``."""
# -         view = self.views[parameter]
# -         if parameter.grad is None:
# -             view.zero_()
# -         else:
# -             view.copy_(parameter.grad)
# -         parameter.grad = view
# +         parameter.grad = self.views[parameter]
# +         self.views[parameter].copy_(parameter.grad)
