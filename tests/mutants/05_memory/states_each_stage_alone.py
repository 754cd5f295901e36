"""Each stage divides its own part only."""
# caught by: test_model_states
# mistake: stages_mixed_up
# %% model_states: changed
# -         params * parameter / (n if stage >= 3 else 1),
# -         params * gradient / (n if stage >= 2 else 1),
# -         params * kept / (n if stage >= 1 else 1),
# +         params * parameter / (n if stage == 3 else 1),
# +         params * gradient / (n if stage == 2 else 1),
# +         params * kept / (n if stage == 1 else 1),
