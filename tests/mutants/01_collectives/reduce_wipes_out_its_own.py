"""Receives into the tensor itself, so the last message is all that is left."""
# caught by: test_reduce
# mistake: overwritten
# %% reduce: changed
# -     landing = torch.empty_like(tensor)
# @@
# -             dist.recv(landing, src=other)
# -             tensor += landing
# +             dist.recv(tensor, src=other)
