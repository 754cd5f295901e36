"""Gathers the model and does not free it."""


# caught by: test_checkpoint
# mistake: kept_in_memory
# says: is still there afterwards
# %% checkpoint: changed
#       name_of, saved = {p: name for name, p in module.named_parameters()}, {}
# +     for flat in zero.flats:
# +         if hasattr(flat, "gather"):
# +             flat.gather()
