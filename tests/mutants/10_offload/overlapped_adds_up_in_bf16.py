"""Gradients of two passes are added in the type they have."""


# caught by: test_OverlappedHostAdam
# mistake: type_fixed
# says: is wrong in
# %% OverlappedHostAdam: changed
# -             master, gradients = self.master_of[p], [copy.wait().float() for copy in copies]
# -             master.grad = sum(gradients)
# +             master, gradients = self.master_of[p], [copy.wait() for copy in copies]
# +             master.grad = sum(gradients).float()
