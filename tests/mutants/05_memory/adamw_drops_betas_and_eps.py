"""The betas and ε that are given do not reach Adam."""
# caught by: test_adamw_step
# mistake: argument_ignored
# says: the parameter after 4 steps is off by
# %% adamw_step: changed
# -     adam_step(parameter, gradient, state, lr, betas, eps)
# +     adam_step(parameter, gradient, state, lr)
