"""Gives each parameter the memory of the copy that came back."""
# caught by: test_OverlappedHostAdam
# mistake: copy_or_view
# %% OverlappedHostAdam: changed
# -             p.copy_(copy.wait())
# +             p.data = copy.wait()
