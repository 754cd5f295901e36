"""Two numbers for momentum, in mixed precision."""
# caught by: test_model_states
# mistake: counted_twice
# says: optimizer is 12012, expected 8008 (1.5 times it)
# %% model_states: changed
# -     numbers = 4 * {"sgd": 0, "momentum": 1, "adam": 2}[optimizer]
# +     numbers = 4 * {"sgd": 0, "momentum": 1 if precision == "fp32" else 2, "adam": 2}[optimizer]
