"""Launches a bucket when the next one is full, the last one in finish."""
# caught by: test_Overlapped
# mistake: no_overlap
# says: full when layer 3 was done, but it left when layer 2 had begun
# %% Overlapped: changed
# -         if not bucket.missing:
# -             bucket.launch()
# +         number = self.buckets.index(bucket)
# +         if not bucket.missing and number:
# +             self.buckets[number - 1].launch()
# @@
# -         """Return when all gradients are the mean. Called after each backward pass, before the optimizer's step."""
# +         self.buckets[-1].launch()
