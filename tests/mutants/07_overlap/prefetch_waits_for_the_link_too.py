"""A gather also waits until the layer before has been computed."""
# caught by: test_forward_pass
# mistake: no_overlap
# %% forward_pass: changed
# -         gathered = max(gathered, freed) + gathers[layer]
# +         gathered = max(gathered, freed, done[-1] if done and ahead < 2 else 0) + gathers[layer]
