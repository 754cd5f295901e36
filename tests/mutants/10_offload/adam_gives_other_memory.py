"""Gives each parameter the memory of the copy that came back."""
# caught by: test_HostAdam
# mistake: copy_or_view
# %% HostAdam: changed
# -             p.copy_(self.link.to_device(master.to(p.dtype)))
# +             p.data = self.link.to_device(master.to(p.dtype))
