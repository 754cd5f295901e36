"""The masters have the parameters' type: small updates are rounded away."""


# caught by: test_HostAdam
# mistake: type_fixed
# says: after step 1 parameter 0 is wrong in
# %% HostAdam: changed
# -         self.masters = [torch.nn.Parameter(link.to_host(p).float()) for p in self.parameters]
# +         self.masters = [torch.nn.Parameter(link.to_host(p)) for p in self.parameters]
# @@
# -             master.grad = self.link.to_host(p.grad).float()
# +             master.grad = self.link.to_host(p.grad)
