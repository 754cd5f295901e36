"""Leaves AdamW's numbers whole on every rank."""
# caught by: test_checkpoint
# mistake: kept_in_memory
# says: is not what it was before the checkpoint
# %% checkpoint: changed
#               all_gather(whole)
# +             if key != "parameter":
# +                 state[key] = whole.clone()
