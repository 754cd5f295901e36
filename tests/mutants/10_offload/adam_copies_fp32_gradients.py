"""Gradients are turned into fp32 on the device: twice the bytes."""


# caught by: test_HostAdam
# mistake: too_much_sent
# says: in step 1 4,512 bytes were copied for the gradients to the host, expected 2,256
# %% HostAdam: changed
# -             master.grad = self.link.to_host(p.grad).float()
# +             master.grad = self.link.to_host(p.grad.float())
