"""Gradients made inside no_sync are thrown away: only the last pass counts."""
# caught by: test_Accumulating
# mistake: state_between_steps
# %% Accumulating: changed
#               super().gradient_ready(parameter)
# +         else:
# +             parameter.grad = None
