"""Each step begins with the rounded parameters from the device."""


# caught by: test_HostAdam
# mistake: state_between_steps
# says: after step 2 parameter 0 is wrong in
# %% HostAdam: changed
# -             master.grad = self.link.to_host(p.grad).float()
# +             master.copy_(self.link.to_host(p))
# +             master.grad = self.link.to_host(p.grad).float()
