"""The gradients stay on the device after the step."""


# caught by: test_HostAdam
# mistake: kept_in_memory
# says: after step 2 parameter 0 is wrong in
# %% HostAdam: changed
# -             p.grad = None
# -         self.optimizer.step()
# +         self.optimizer.step()
