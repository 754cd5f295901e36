"""Parameters are known by their size."""


# caught by: test_OverlappedHostAdam
# mistake: special_case
# says: parameter 0 is wrong
# %% OverlappedHostAdam: changed
# -         self.master_of = dict(zip(self.parameters, self.masters, strict=True))
# +         self.master_of = {p.numel(): master for p, master in zip(self.parameters, self.masters, strict=True)}
# @@
# -             master, gradients = self.master_of[p], [copy.wait().float() for copy in copies]
# +             master, gradients = self.master_of[p.numel()], [copy.wait().float() for copy in copies]
