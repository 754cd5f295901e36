"""Waits for the bucket before, so that one is under way at most."""
# caught by: test_backward_pass
# mistake: no_overlap
# says: bucket 0 of 6: waited for while layers had still to compute
# %% backward_pass: changed
# -             flat = torch.cat(filling)
# +             if travelling:
# +                 travelling[-1][0].wait()
# +             flat = torch.cat(filling)
