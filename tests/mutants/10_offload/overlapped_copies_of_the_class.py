"""All objects keep their copies in one place."""
# caught by: test_OverlappedHostAdam
# mistake: one_for_all
# says: raised KeyError
# %% OverlappedHostAdam: changed
# -         self.leaving = {}  # parameter -> copies of its gradients, one for each backward pass; the first done is first
# +         type(self).leaving = {}
# @@
# -         self.leaving = {}
#           for p, copy in returning:
# +             type(self).leaving = {}
