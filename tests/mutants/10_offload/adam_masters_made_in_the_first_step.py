"""The masters are made in the first step."""


# caught by: test_HostAdam
# mistake: too_early
# says: __init__ copied 0 bytes to the host
# %% HostAdam: changed
# -         self.masters = [torch.nn.Parameter(link.to_host(p).float()) for p in self.parameters]
# -         self.optimizer = torch.optim.AdamW(self.masters, **adamw)
# +         self.masters, self.adamw = None, adamw
#
#       @torch.no_grad()
#       def step(self):
#           """Step all parameters that have a gradient."""
# +         if self.masters is None:
# +             self.masters = [torch.nn.Parameter(self.link.to_host(p).float()) for p in self.parameters]
# +             self.optimizer = torch.optim.AdamW(self.masters, **self.adamw)
