"""Lets gathers share the link at no cost."""
# caught by: test_forward_pass
# mistake: link_not_shared
# says: the time is
# %% forward_pass: changed
# -         gathered = max(gathered, freed) + gathers[layer]
# +         gathered = freed + gathers[layer]
