"""The hooks average the parameter instead of its gradient, which never leaves its rank."""
# caught by: test_Overlapped
# mistake: parameters_for_gradients
# %% Overlapped: changed
# -         """The hook: ``parameter.grad`` is complete."""
# -         bucket = self.bucket_of[parameter]
# -         bucket.put(parameter)
# -         if not bucket.missing:
# -             bucket.launch()
# +         with torch.no_grad():
# +             dist.all_reduce(parameter)
# +             parameter /= dist.get_world_size()
# @@
# -         """Return when all gradients are the mean. Called after each backward pass, before the optimizer's step."""
# -         for bucket in self.buckets:
# -             bucket.wait()
# +         pass
