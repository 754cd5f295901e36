"""The optimizer keeps the parameter once more, in fp32 too."""
# caught by: test_model_states
# mistake: counted_twice
# says: optimizer is 4000, expected 0
# %% model_states: changed
# -         "fp32": (4, 4, numbers),
# +         "fp32": (4, 4, 4 + numbers),
