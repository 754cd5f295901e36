"""Writes into the same memory in each call."""


# caught by: test_quantise
# mistake: copy_or_view
# says: a second call of quantise wrote over what the first returned
# %% quantise: changed
# -     integers = torch.zeros(x.numel(), dtype=torch.int8)
# +     room = vars(quantise).setdefault("room", {})
# +     integers = room.setdefault(x.numel(), torch.zeros(x.numel(), dtype=torch.int8)).zero_()
