"""The step uses the gradients of the step before."""


# caught by: test_HostAdam
# mistake: too_early
# says: after step 1 parameter 0 is wrong in
# %% HostAdam: changed
# -         self.optimizer.step()
# +         stale, self.fresh = getattr(self, "fresh", {}), {m: m.grad for _, m in stepped}
# +         for _, master in stepped:
# +             master.grad = stale.get(master, torch.zeros_like(master))
# +         self.optimizer.step()
