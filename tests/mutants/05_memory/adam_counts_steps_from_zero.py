"""Corrects the bias with the number of steps before this one (and one at the first)."""
# caught by: test_adam_step
# %% adam_step
@torch.no_grad()
def adam_step(parameter, gradient, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    if not state:
        state.update(step=0, m=torch.zeros_like(parameter), v=torch.zeros_like(parameter))
    state["m"].mul_(betas[0]).add_(gradient, alpha=1 - betas[0])
    state["v"].mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
    t = max(1, state["step"])
    state["step"] += 1
    m_hat, v_hat = state["m"] / (1 - betas[0] ** t), state["v"] / (1 - betas[1] ** t)
    parameter.sub_(lr * m_hat / (v_hat.sqrt() + eps))
