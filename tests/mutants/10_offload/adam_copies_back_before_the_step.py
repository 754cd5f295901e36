"""What comes back is what was there before the step."""


# caught by: test_HostAdam
# mistake: too_early
# says: after step 1 parameter 0 is wrong in
# %% HostAdam: changed
# -         self.optimizer.step()
# -         for p, master in stepped:
# -             master.grad = None
# -             p.copy_(self.link.to_device(master.to(p.dtype)))
# +         for p, master in stepped:
# +             p.copy_(self.link.to_device(master.to(p.dtype)))
# +         self.optimizer.step()
# +         for _, master in stepped:
# +             master.grad = None
