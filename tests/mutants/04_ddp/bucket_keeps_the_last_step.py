"""Where a gradient does not come, the last step's mean is still in its place."""
# caught by: test_Bucket
# mistake: state_between_steps
# %% Bucket: changed
# -         self.views = {p: part.view_as(p) for p, part in zip(self.parameters, parts, strict=True)}
# +         self.views = {p: part.view_as(p) for p, part in zip(self.parameters, parts)}
# @@
# -         if parameter.grad is None:
# -             view.zero_()
# -         else:
# +         if parameter.grad is not None:
