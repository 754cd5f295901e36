"""Writes a vector into its parameter when the next one is stepped."""


# caught by: test_OverlappedHostAdam
# mistake: no_overlap
# says: was waited for before all vectors were stepped
# %% OverlappedHostAdam: changed
# -             returning.append((p, self.link.start_to_device(master.to(p.dtype))))
# +             for q, copy in returning:
# +                 q.copy_(copy.wait())
# +             returning = [(p, self.link.start_to_device(master.to(p.dtype)))]
