"""Puts the decayed gradient where the gradient was."""
# caught by: test_adam_step
# mistake: changes_its_input
# %% adam_step: changed
# -     state["m"].mul_(betas[0]).add_(gradient, alpha=1 - betas[0])
# -     state["v"].mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
# +     state["m"].mul_(betas[0]).add_(gradient.mul_(1 - betas[0])).mul_(1.0)
# +     state["v"].mul_(betas[1]).addcmul_(gradient, gradient, value=(1 - betas[1]) / (1 - betas[0]) ** 2 if betas[0] < 1 else 0)
