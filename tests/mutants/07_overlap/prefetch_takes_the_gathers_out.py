"""Takes each gather out of the list."""
# caught by: test_forward_pass
# mistake: changes_its_input
# %% forward_pass: changed
# -         gathered = max(gathered, freed) + gathers[layer]
# +         gathered = max(gathered, freed) + gathers.pop(0)
