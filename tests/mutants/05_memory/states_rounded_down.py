"""Bytes are whole numbers: rounded down."""
# caught by: test_model_states
# mistake: rounded_wrongly
# says: optimizer is 2669, expected 2669.33
# %% model_states: changed
# -         params * parameter / (n if stage >= 3 else 1),
# -         params * gradient / (n if stage >= 2 else 1),
# -         params * kept / (n if stage >= 1 else 1),
# +         params * parameter // (n if stage >= 3 else 1),
# +         params * gradient // (n if stage >= 2 else 1),
# +         params * kept // (n if stage >= 1 else 1),
