"""Keeps the parameter of the step before, which nothing needs."""
# caught by: test_adamw_step
# mistake: kept_in_memory
# says: 3 numbers a parameter, expected 2
# %% adamw_step: changed
# -     adam_step(parameter, gradient, state, lr, betas, eps)
# +     adam_step(parameter, gradient, state, lr, betas, eps)
# +     state["before"] = parameter.clone()
