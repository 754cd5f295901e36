"""A gradient of zeros is not compressed: what was left out waits, and other ranks wait too."""


# caught by: test_ErrorFeedback
# mistake: special_case
# says: never entered all_reduce
# %% ErrorFeedback: changed
#           """The mean over ranks of what each sends of ``gradient`` and of what it had left out before."""
# +         if not gradient.any():
# +             return torch.zeros_like(gradient)
