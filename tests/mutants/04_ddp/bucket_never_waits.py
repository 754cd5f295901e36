"""The asynchronous all-reduce is never waited for."""
# caught by: test_Bucket
# mistake: never_waits
# says: never called wait() on its all_reduce
# %% Bucket: changed
# -         self.views = {p: part.view_as(p) for p, part in zip(self.parameters, parts, strict=True)}
# +         self.views = {p: part.view_as(p) for p, part in zip(self.parameters, parts)}
# @@
# -         """Return when the mean is there, ready for the next step."""
# -         self.work.wait()
