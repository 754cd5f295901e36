"""Adds into a new tensor and returns that."""


# caught by: test_reduce
# mistake: copy_or_view
# says: the root's tensor is wrong
# %% reduce: changed
#       landing = torch.empty_like(tensor)
# +     total = tensor.clone()
# @@
# -             tensor += landing
# +             total += landing
# +     return total
