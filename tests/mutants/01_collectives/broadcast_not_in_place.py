"""Returns the root's tensor and leaves the rank's own as it was."""
# caught by: test_broadcast
# mistake: copy_or_view
# %% broadcast: changed
# -     else:
# -         dist.recv(tensor, src=root)
# +         return tensor
# +     landing = torch.empty_like(tensor)
# +     dist.recv(landing, src=root)
# +     return landing
