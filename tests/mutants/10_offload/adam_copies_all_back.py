"""Copies all parameters back, those without a gradient too."""


# caught by: test_HostAdam
# mistake: too_much_sent
# says: in step 1 188 bytes were copied for the parameters to the device, expected 88
# %% HostAdam: changed
#           self.optimizer.step()
# -         for p, master in stepped:
# +         for p, master in zip(self.parameters, self.masters, strict=True):
