"""A rank whose matrix is all zeros sends nothing, and the others wait for it."""


# caught by: test_PowerSGD
# mistake: special_case
# says: rank 1 never entered all_reduce
# %% PowerSGD: changed
#           """An approximation of the mean over ranks of ``matrix``; the next one begins where this one ends."""
# +         if not matrix.any():
# +             return torch.zeros_like(matrix)
