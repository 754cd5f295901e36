"""The first layers, in the last bucket, are never averaged."""
# caught by: test_Overlapped
# mistake: last_left_out
# %% Overlapped: changed
# -         if not bucket.missing:
# +         if not bucket.missing and bucket is not self.buckets[-1]:
# @@
# -         """Return when all gradients are the mean. Called after each backward pass, before the optimizer's step."""
# -         for bucket in self.buckets:
# +         for bucket in self.buckets[:-1]:
# @@
#               bucket.wait()
# +         self.buckets[-1].missing = set(self.buckets[-1].parameters)
