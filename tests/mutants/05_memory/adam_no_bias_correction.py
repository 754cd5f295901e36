"""The moments as they are, without the hats."""
# caught by: test_adam_step
# mistake: part_missing
# says: the moments are not corrected: the hats are missing
# %% adam_step
@torch.no_grad()
def adam_step(parameter, gradient, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    if not state:
        state.update(m=torch.zeros_like(parameter), v=torch.zeros_like(parameter))
    state["m"].mul_(betas[0]).add_(gradient, alpha=1 - betas[0])
    state["v"].mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
    parameter.sub_(lr * state["m"] / (state["v"].sqrt() + eps))
