"""Squares the gradient where it stands."""
# caught by: test_adamw_step
# mistake: changes_its_input
# %% adamw_step
@torch.no_grad()
def adamw_step(parameter, gradient, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
    parameter.mul_(1 - lr * weight_decay)
    if not state:
        state.update(step=0, m=torch.zeros_like(parameter), v=torch.zeros_like(parameter))
    state["step"] += 1
    state["m"].mul_(betas[0]).add_(gradient, alpha=1 - betas[0])
    state["v"].mul_(betas[1]).add_(gradient.square_(), alpha=1 - betas[1])
    m_hat = state["m"] / (1 - betas[0] ** state["step"])
    v_hat = state["v"] / (1 - betas[1] ** state["step"])
    parameter.sub_(lr * m_hat / (v_hat.sqrt() + eps))
