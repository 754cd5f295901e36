"""No fp32 copy for SGD."""
# caught by: test_model_states
# mistake: one_of_a_kind
# %% model_states: changed
# -         "mixed": (2, 2, 4 + numbers),
# +         "mixed": (2, 2, 4 + numbers if numbers else 0),
