"""The sum for the mean."""
# caught by: test_Bucket
# mistake: sum_or_mean
# %% Bucket: changed
# -         self.views = {p: part.view_as(p) for p, part in zip(self.parameters, parts, strict=True)}
# +         self.views = {p: part.view_as(p) for p, part in zip(self.parameters, parts)}
# @@
# -         """Start the all-reduce."""
# -         self.flat /= dist.get_world_size()
