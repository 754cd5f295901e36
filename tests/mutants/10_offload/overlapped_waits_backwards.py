"""Waits for the last gradient first, then steps in order."""


# caught by: test_OverlappedHostAdam
# mistake: no_overlap
# says: the gradient of 140 numbers was waited for before the vector of 200 was stepped
# %% OverlappedHostAdam: changed
# -         returning = []
# +         returning, there = [], {}
# +         last = list(self.leaving)[-1:]
# +         for p in last:
# +             there[p] = [copy.wait().float() for copy in self.leaving[p]]
#           for p, copies in self.leaving.items():
# -             master, gradients = self.master_of[p], [copy.wait().float() for copy in copies]
# +             master, gradients = self.master_of[p], there.get(p) or [copy.wait().float() for copy in copies]
