"""After the first step nothing is missing any more."""
# caught by: test_Bucket
# mistake: state_between_steps
# %% Bucket: changed
# -         self.views = {p: part.view_as(p) for p, part in zip(self.parameters, parts, strict=True)}
# +         self.views = {p: part.view_as(p) for p, part in zip(self.parameters, parts)}
# @@
#           self.work.wait()
# -         self.missing = set(self.parameters)
