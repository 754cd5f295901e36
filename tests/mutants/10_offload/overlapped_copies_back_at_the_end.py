"""The copies back begin when all vectors are stepped."""


# caught by: test_OverlappedHostAdam
# mistake: no_overlap
# says: when the vector of 96 numbers was stepped, the copy of the one before, of 200 numbers, had not
# %% OverlappedHostAdam: changed
# -             returning.append((p, self.link.start_to_device(master.to(p.dtype))))
# +             returning.append((p, master))
# @@
# -         for p, copy in returning:
# +         for p, copy in [(p, self.link.start_to_device(master.to(p.dtype))) for p, master in returning]:
