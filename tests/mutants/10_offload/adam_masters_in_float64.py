"""Masters of float64."""


# caught by: test_HostAdam
# mistake: wrong_kind
# %% HostAdam: changed
# -         self.masters = [torch.nn.Parameter(link.to_host(p).float()) for p in self.parameters]
# +         self.masters = [torch.nn.Parameter(link.to_host(p).double()) for p in self.parameters]
# @@
# -             master.grad = self.link.to_host(p.grad).float()
# +             master.grad = self.link.to_host(p.grad).double()
