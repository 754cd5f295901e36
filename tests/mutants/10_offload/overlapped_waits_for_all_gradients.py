"""The first vector is stepped when all gradients are there."""


# caught by: test_OverlappedHostAdam
# says: all gradients were waited for before the first vector was stepped
# %% OverlappedHostAdam: changed
# -         returning = []
# +         returning = []
# +         there = {p: [copy.wait().float() for copy in self.leaving[p]] for p in self.parameters}
# @@
# -             gradients = [copy.wait().float() for copy in self.leaving[p]]
# +             gradients = there[p]
