"""Waits for each bucket as soon as it has launched it: backward stands still meanwhile."""
# caught by: test_Overlapped
# mistake: no_overlap
# says: waited for before the backward pass was over
# %% Overlapped: changed
#               bucket.launch()
# +             bucket.wait()
# @@
# -         """Return when all gradients are the mean. Called after each backward pass, before the optimizer's step."""
# -         for bucket in self.buckets:
# -             bucket.wait()
# +         pass
