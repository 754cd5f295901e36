"""The masters belong to the class, so a second object takes the place of the first."""
# caught by: test_HostAdam
# mistake: one_for_all
# says: parameter 0
# %% HostAdam: changed
# -         self.masters = [torch.nn.Parameter(link.to_host(p).float()) for p in self.parameters]
# +         type(self).masters = [torch.nn.Parameter(link.to_host(p).float()) for p in self.parameters]
