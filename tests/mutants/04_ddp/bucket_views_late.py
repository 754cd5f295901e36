"""put() leaves the gradient where it was; only wait() makes it a view."""
# caught by: test_Bucket
# mistake: copy_or_view
# says: when put() returns
# %% Bucket: changed
# -         parameter.grad = view
#           self.missing.discard(parameter)
# @@
#           self.work.wait()
# +         for parameter, view in self.views.items():
# +             parameter.grad = view
