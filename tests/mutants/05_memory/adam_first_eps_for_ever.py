"""Notes ε in the first step."""
# caught by: test_adam_step
# mistake: state_between_steps
# %% adam_step: changed
#       if not state:
# -         state.update(step=0, m=torch.zeros_like(parameter), v=torch.zeros_like(parameter))
# +         state.update(step=0, eps=eps, m=torch.zeros_like(parameter), v=torch.zeros_like(parameter))
#       state["step"] += 1
# +     eps = state["eps"]
#       state["m"].mul_(betas[0]).add_(gradient, alpha=1 - betas[0])
