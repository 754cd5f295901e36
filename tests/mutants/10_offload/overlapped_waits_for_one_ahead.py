"""Waits for the next gradient before it steps this one."""


# caught by: test_OverlappedHostAdam
# mistake: no_overlap
# says: was waited for before the vector of 200 was stepped
# %% OverlappedHostAdam: changed
# -         for p, copies in self.leaving.items():
# -             master, gradients = self.master_of[p], [copy.wait().float() for copy in copies]
# +         todo, there = list(self.leaving.items()), {}
# +         for i, (p, _) in enumerate(todo):
# +             for q, copies in todo[i : i + 2]:
# +                 there.setdefault(q, None)
# +                 there[q] = there[q] or [copy.wait().float() for copy in copies]
# +             master, gradients = self.master_of[p], there[p]
