"""The moments in globals: two parameters share them."""
# caught by: test_adam_step
# mistake: state_between_steps
# %% adam_step
KEPT = {}


@torch.no_grad()
def adam_step(parameter, gradient, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    if not state:
        KEPT.update(step=0, m=torch.zeros_like(parameter), v=torch.zeros_like(parameter))
        state.update(m=KEPT["m"], v=KEPT["v"])
    KEPT["step"] += 1
    KEPT["m"].mul_(betas[0]).add_(gradient, alpha=1 - betas[0])
    KEPT["v"].mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
    m_hat, v_hat = KEPT["m"] / (1 - betas[0] ** KEPT["step"]), KEPT["v"] / (1 - betas[1] ** KEPT["step"])
    parameter.sub_(lr * m_hat / (v_hat.sqrt() + eps))
