"""The number of steps is a global."""
# caught by: test_adam_step
# mistake: one_for_all
# %% adam_step: changed
# + COUNT = [0]
# +
# +
#   @torch.no_grad()
# @@
#       if not state:
# -         state.update(step=0, m=torch.zeros_like(parameter), v=torch.zeros_like(parameter))
# -     state["step"] += 1
# +         COUNT[0] = 0
# +         state.update(m=torch.zeros_like(parameter), v=torch.zeros_like(parameter))
# +     COUNT[0] += 1
#       state["m"].mul_(betas[0]).add_(gradient, alpha=1 - betas[0])
#       state["v"].mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
# -     m_hat = state["m"] / (1 - betas[0] ** state["step"])
# -     v_hat = state["v"] / (1 - betas[1] ** state["step"])
# +     m_hat = state["m"] / (1 - betas[0] ** COUNT[0])
# +     v_hat = state["v"] / (1 - betas[1] ** COUNT[0])
#       parameter.sub_(lr * m_hat / (v_hat.sqrt() + eps))
