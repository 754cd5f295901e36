"""AMSGrad: the largest v there was."""
# caught by: test_adam_step
# mistake: other_algorithm
# %% adam_step: changed
#       state["v"].mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
# +     state["most"] = torch.maximum(state.get("most", state["v"]), state["v"])
#       m_hat = state["m"] / (1 - betas[0] ** state["step"])
# -     v_hat = state["v"] / (1 - betas[1] ** state["step"])
# +     v_hat = state["most"] / (1 - betas[1] ** state["step"])
#       parameter.sub_(lr * m_hat / (v_hat.sqrt() + eps))
