"""The gradients keep memory of their own, and the mean is copied back: right, with one more pass over all bytes."""
# caught by: test_Bucket
# mistake: too_much_copied
# %% Bucket: changed
# -         self.views = {p: part.view_as(p) for p, part in zip(self.parameters, parts, strict=True)}
# +         self.views = {p: part.view_as(p) for p, part in zip(self.parameters, parts)}
# @@
# -         """Take the parameter's gradient in; from now on ``parameter.grad`` is a view of ``flat``."""
# -         view = self.views[parameter]
# @@
# -             view.zero_()
# -         else:
# -             view.copy_(parameter.grad)
# -         parameter.grad = view
# +             parameter.grad = torch.zeros_like(parameter)
# +         self.views[parameter].copy_(parameter.grad)
# @@
#           self.work.wait()
# +         for p in self.parameters:
# +             p.grad.copy_(self.views[p])
