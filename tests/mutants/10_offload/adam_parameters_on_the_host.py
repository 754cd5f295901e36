"""The parameters are moved to the host's memory and never copied back."""


# caught by: test_HostAdam
# mistake: copy_or_view
# says: parameter 0 is in host memory now; the device computes with it
# %% HostAdam: changed
# -             p.copy_(self.link.to_device(master.to(p.dtype)))
# +             p.data = master.detach().to(p.dtype)
