"""A gradient is copied and kept on the device until the step."""


# caught by: test_OverlappedHostAdam
# mistake: kept_in_memory
# says: in the backward pass the device held 4,528 bytes, with parameters of 2,256 and a largest gradie
# %% OverlappedHostAdam: changed
# -         self.leaving.setdefault(p, []).append(self.link.start_to_host(p.grad))
# -         p.grad = None
# +         self.leaving.setdefault(p, []).append(self.link.start_to_host(p.grad))
# @@
# -         returning = []
# +         returning = []
# +         for p in self.parameters:
# +             p.grad = None
