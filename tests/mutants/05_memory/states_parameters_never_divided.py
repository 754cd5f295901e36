"""Stage 3 is stage 2."""
# caught by: test_model_states
# mistake: stages_mixed_up
# says: parameters is
# %% model_states: changed
# -         params * parameter / (n if stage >= 3 else 1),
# +         params * parameter,
