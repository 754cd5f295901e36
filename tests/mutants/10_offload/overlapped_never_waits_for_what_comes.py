"""Takes what the copy makes without waiting."""


# caught by: test_OverlappedHostAdam
# mistake: never_waits
# says: nobody waited for the vector of 200 numbers that comes back
# %% OverlappedHostAdam: changed
# -             p.copy_(copy.wait())
# +             p.copy_(copy._made)
