"""Gradients are turned into fp32 before they leave: twice the bytes."""
# caught by: test_OverlappedHostAdam
# mistake: too_much_sent
# says: in step 1 4,512 bytes were copied for the gradients to the host, expected 2,256
# %% OverlappedHostAdam: changed
# -         self.leaving.setdefault(p, []).append(self.link.start_to_host(p.grad))
# +         self.leaving.setdefault(p, []).append(self.link.start_to_host(p.grad.float()))
