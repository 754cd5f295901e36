"""With SGD the fp32 parameters are on every rank."""
# caught by: test_model_states
# mistake: part_missing
# says: optimizer is
# %% model_states: changed
# -         params * kept / (n if stage >= 1 else 1),
# +         params * kept / (n if stage >= 1 and optimizer != "sgd" else 1),
