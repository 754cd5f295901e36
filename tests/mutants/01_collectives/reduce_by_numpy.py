"""Adds with NumPy, which knows no bfloat16."""


# caught by: test_reduce
# mistake: type_fixed
# says: unsupported ScalarType BFloat16
# %% reduce: changed
# -             tensor += landing
# +             tensor += torch.from_numpy(landing.cpu().numpy()).to(tensor.device)
