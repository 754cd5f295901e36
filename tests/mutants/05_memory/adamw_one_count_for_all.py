"""The number of steps is a global, which begins again with each parameter that is new."""
# caught by: test_adamw_step
# mistake: one_for_all
# %% adamw_step
STEPS = 0


@torch.no_grad()
def adamw_step(parameter, gradient, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
    global STEPS
    parameter.mul_(1 - lr * weight_decay)
    if not state:
        STEPS = 0
        state.update(m=torch.zeros_like(parameter), v=torch.zeros_like(parameter))
    STEPS += 1
    state["m"].mul_(betas[0]).add_(gradient, alpha=1 - betas[0])
    state["v"].mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
    m_hat = state["m"] / (1 - betas[0] ** STEPS)
    v_hat = state["v"] / (1 - betas[1] ** STEPS)
    parameter.sub_(lr * m_hat / (v_hat.sqrt() + eps))
