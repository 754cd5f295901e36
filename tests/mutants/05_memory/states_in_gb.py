"""GB, where bytes were asked for."""
# caught by: test_model_states
# mistake: units
# says: (1e-09 times it: GB, not bytes?)
# %% model_states: changed
# -         params * parameter / (n if stage >= 3 else 1),
# -         params * gradient / (n if stage >= 2 else 1),
# -         params * kept / (n if stage >= 1 else 1),
# +         params * parameter / (n if stage >= 3 else 1) / 1e9,
# +         params * gradient / (n if stage >= 2 else 1) / 1e9,
# +         params * kept / (n if stage >= 1 else 1) / 1e9,
