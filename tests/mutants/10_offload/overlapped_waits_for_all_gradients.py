"""The first vector is stepped when all gradients are there."""


# caught by: test_OverlappedHostAdam
# mistake: no_overlap
# says: all gradients were waited for before the first vector was stepped
# %% OverlappedHostAdam: changed
# -         returning = []
# +         returning = []
# +         there = {p: [copy.wait().float() for copy in copies] for p, copies in self.leaving.items()}
# @@
# -             master, gradients = self.master_of[p], [copy.wait().float() for copy in copies]
# +             master, gradients = self.master_of[p], there[p]
