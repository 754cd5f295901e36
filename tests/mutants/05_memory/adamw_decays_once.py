"""Decays at the first step only."""
# caught by: test_adamw_step
# mistake: state_between_steps
# says: the parameter decays in the first step only
# %% adamw_step
@torch.no_grad()
def adamw_step(parameter, gradient, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
    if not state:
        parameter.mul_(1 - lr * weight_decay)
    adam_step(parameter, gradient, state, lr, betas, eps)
