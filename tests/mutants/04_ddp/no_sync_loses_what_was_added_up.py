"""Gradients made inside no_sync are thrown away: only the last pass counts."""
# caught by: test_Accumulating
# %% Accumulating: changed
#               super().gradient_ready(parameter)
# +         else:
# +             parameter.grad = None
