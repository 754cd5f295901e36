"""The masters travel, and are rounded on the device: twice the bytes."""


# caught by: test_HostAdam
# mistake: too_much_sent
# says: in step 1 4,512 bytes were copied for the parameters to the device, expected 2,256
# %% HostAdam: changed
# -             p.copy_(self.link.to_device(master.to(p.dtype)))
# +             p.copy_(self.link.to_device(master))
