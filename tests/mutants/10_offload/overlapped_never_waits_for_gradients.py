"""Takes the gradients from the copies without waiting."""


# caught by: test_OverlappedHostAdam
# mistake: never_waits
# says: and nobody had waited for its gradient
# %% OverlappedHostAdam: changed
# -             master, gradients = self.master_of[p], [copy.wait().float() for copy in copies]
# +             master, gradients = self.master_of[p], [copy._made.float() for copy in copies]
