"""Keeps the first checkpoint, and gives it to whoever asks again."""


# caught by: test_checkpoint
# mistake: state_between_steps
# says: a second checkpoint has the tensors of the first
# %% checkpoint: changed
#       """Whole parameters and AdamW's numbers by the parameters' names, from all ranks' shards."""
# +     if hasattr(zero, "saved"):
# +         return zero.saved
# @@
#                   saved.setdefault(name_of[p], {})[key] = part.view(p.shape)
# +     zero.saved = saved
