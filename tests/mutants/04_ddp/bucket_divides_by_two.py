"""Divides by the number of ranks it was tried on."""
# caught by: test_Bucket
# mistake: some_ranks_only
# %% Bucket: changed
# -         self.views = {p: part.view_as(p) for p, part in zip(self.parameters, parts, strict=True)}
# +         self.views = {p: part.view_as(p) for p, part in zip(self.parameters, parts)}
# @@
# -         """Start the all-reduce."""
# -         self.flat /= dist.get_world_size()
# +         self.flat /= 2
