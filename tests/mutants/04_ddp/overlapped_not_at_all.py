"""No overlap: the same buckets and messages, all of them after the backward pass."""
# caught by: test_Overlapped
# mistake: no_overlap
# says: bucket 1 of 4: full when layer 3 was done, but it left after the backward pass
# %% Overlapped: changed
# -         """The hook: ``parameter.grad`` is complete."""
# -         bucket = self.bucket_of[parameter]
# -         bucket.put(parameter)
# -         if not bucket.missing:
# -             bucket.launch()
# +         self.bucket_of[parameter].put(parameter)
# @@
# -         """Return when all gradients are the mean. Called after each backward pass, before the optimizer's step."""
# +         for bucket in self.buckets:
# +             bucket.launch()
