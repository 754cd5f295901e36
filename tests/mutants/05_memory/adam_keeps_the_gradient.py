"""A third number a parameter: the last gradient, which nothing needs."""
# caught by: test_adam_step
# mistake: kept_in_memory
# says: 3 numbers a parameter, expected 2
# %% adam_step: changed
#       state["step"] += 1
# +     state["last"] = gradient.clone()
