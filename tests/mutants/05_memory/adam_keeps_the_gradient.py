"""A third number a parameter: the last gradient, which nothing needs."""
# caught by: test_adam_step
# %% adam_step: changed
#       state["step"] += 1
# +     state["last"] = gradient.clone()
