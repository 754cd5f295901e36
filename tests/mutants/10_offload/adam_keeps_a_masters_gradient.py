"""Never clears the gradients of the masters: without a new one, the old one is used again."""
# caught by: test_HostAdam
# mistake: without_gradient
# says: parameter 1
# %% HostAdam: changed
#           for p, master in stepped:
# -             master.grad = None
#               p.copy_(self.link.to_device(master.to(p.dtype)))
