"""The count of steps begins anew: the next step is another."""
# caught by: test_checkpoint
# mistake: state_between_steps
# says: is not what it was before the checkpoint
# %% checkpoint: changed
#       for flat, state in zip(zero.flats, zero.states, strict=True):
# +         state["step"] = 0
