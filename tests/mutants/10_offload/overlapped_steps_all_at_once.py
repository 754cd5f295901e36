"""One step of the optimizer for all vectors, then all copies."""


# caught by: test_OverlappedHostAdam
# mistake: no_overlap
# says: one step of the optimizer stepped 1,128 numbers; step one vector at a time
# %% OverlappedHostAdam: changed
# -             self.optimizer.step()
# -             master.grad = None
# -             returning.append((p, self.link.start_to_device(master.to(p.dtype))))
# +             returning.append((p, master))
# +         self.optimizer.step()
# +         returning = [(p, m, self.link.start_to_device(m.to(p.dtype))) for p, m in returning]
# @@
# -         for p, copy in returning:
# -             p.copy_(copy.wait())
# +         for p, master, copy in returning:
# +             master.grad = None
# +             p.copy_(copy.wait())
