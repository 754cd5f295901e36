"""The betas and ε that are given do not reach Adam."""
# caught by: test_adamw_step
# says: the parameter after 4 steps is off by
# %% adamw_step: changed
# -     adam_step(parameter, gradient, state, lr, betas, eps)
# +     adam_step(parameter, gradient, state, lr)
