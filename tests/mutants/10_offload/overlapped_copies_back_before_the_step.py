"""The copy back begins before the vector is stepped."""


# caught by: test_OverlappedHostAdam
# mistake: too_early
# says: after step 1 parameter 0 is wrong in
# %% OverlappedHostAdam: changed
# -             self.optimizer.step()
# -             master.grad = None
# -             returning.append((p, self.link.start_to_device(master.to(p.dtype))))
# +             returning.append((p, self.link.start_to_device(master.to(p.dtype))))
# +             self.optimizer.step()
# +             master.grad = None
