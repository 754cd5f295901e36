"""Gradients of two passes are added in the type they have."""


# caught by: test_OverlappedHostAdam
# says: after step 2 parameter 2 is wrong in
# %% OverlappedHostAdam: changed
# -             gradients = [copy.wait().float() for copy in self.leaving[p]]
# +             gradients = [copy.wait() for copy in self.leaving[p]]
# @@
# -                 master.grad = sum(gradients)
# +                 master.grad = sum(gradients).float()
