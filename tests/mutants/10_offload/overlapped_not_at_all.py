"""HostAdam under another name."""


# caught by: test_OverlappedHostAdam
# mistake: no_overlap
# says: the backward pass went on while the gradient of 200 numbers had not begun to leave
# %% OverlappedHostAdam
class OverlappedHostAdam(HostAdam):
    pass
