"""The gradients go to the host as Python numbers, past the link."""
# caught by: test_HostAdam
# mistake: uncounted_way
# says: 0 bytes were copied for the gradients to the host
# %% HostAdam: changed
# -             master.grad = self.link.to_host(p.grad).float()
# +             master.grad = torch.tensor(p.grad.tolist())
