"""All gradients leave when the backward pass is over."""


# caught by: test_OverlappedHostAdam
# mistake: no_overlap
# says: the backward pass went on while the gradient of 200 numbers had not begun to leave
# %% OverlappedHostAdam: changed
# -         self.leaving.setdefault(p, []).append(self.link.start_to_host(p.grad))
# -         p.grad = None
# +         pass
# @@
# -         returning = []
# +         returning = []
# +         for p in self.parameters:
# +             if p.grad is not None:
# +                 self.leaving.setdefault(p, []).append(self.link.start_to_host(p.grad))
# +                 p.grad = None
