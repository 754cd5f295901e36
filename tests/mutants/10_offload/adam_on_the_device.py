"""Masters and states are in the device's memory: nothing is offloaded."""


# caught by: test_HostAdam
# mistake: kept_in_memory
# says: after __init__ the device holds 6,768 bytes; the parameters are 2,256
# %% HostAdam: changed
# -         self.masters = [torch.nn.Parameter(link.to_host(p).float()) for p in self.parameters]
# +         self.masters = [torch.nn.Parameter(p.detach().float().clone()) for p in self.parameters]
# @@
# -             master.grad = self.link.to_host(p.grad).float()
# +             self.link.to_host(p.grad)
# +             master.grad = p.grad.float()
# @@
# -             p.copy_(self.link.to_device(master.to(p.dtype)))
# +             p.copy_(master)
# +             self.link.to_device(torch.empty(p.shape, dtype=p.dtype))
