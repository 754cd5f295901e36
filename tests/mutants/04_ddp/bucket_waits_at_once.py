"""Waits right after it has launched."""
# caught by: test_Bucket
# mistake: no_overlap
# says: waited for its all-reduce inside launch()
# %% Bucket: changed
# -         self.views = {p: part.view_as(p) for p, part in zip(self.parameters, parts, strict=True)}
# +         self.views = {p: part.view_as(p) for p, part in zip(self.parameters, parts)}
# @@
# -         self.work = dist.all_reduce(self.flat, async_op=True)
# +         dist.all_reduce(self.flat, async_op=True).wait()
# @@
# -         """Return when the mean is there, ready for the next step."""
# -         self.work.wait()
