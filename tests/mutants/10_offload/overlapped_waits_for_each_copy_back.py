"""A vector is back before the next one is stepped."""


# caught by: test_OverlappedHostAdam
# mistake: no_overlap
# says: the copy of 200 numbers to the device was waited for before all vectors were stepped
# %% OverlappedHostAdam: changed
# -             returning.append((p, self.link.start_to_device(master.to(p.dtype))))
# +             p.copy_(self.link.to_device(master.to(p.dtype)))
