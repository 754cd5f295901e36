"""Tensors are pieces of the vector, without their shape."""


# caught by: test_checkpoint
# mistake: wrong_kind
# %% checkpoint: changed
# -                 saved.setdefault(name_of[p], {})[key] = part.view(p.shape)
# +                 saved.setdefault(name_of[p], {})[key] = part
