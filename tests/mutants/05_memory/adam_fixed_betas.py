"""0.9 and 0.999 wherever a beta stands."""
# caught by: test_adam_step
# mistake: argument_ignored
# says: the betas are always 0.9 and 0.999, whatever was given
# %% adam_step
@torch.no_grad()
def adam_step(parameter, gradient, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    if not state:
        state.update(step=0, m=torch.zeros_like(parameter), v=torch.zeros_like(parameter))
    state["step"] += 1
    state["m"].mul_(0.9).add_(gradient, alpha=0.1)
    state["v"].mul_(0.999).addcmul_(gradient, gradient, value=0.001)
    m_hat, v_hat = state["m"] / (1 - 0.9 ** state["step"]), state["v"] / (1 - 0.999 ** state["step"])
    parameter.sub_(lr * m_hat / (v_hat.sqrt() + eps))
