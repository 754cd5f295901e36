"""Decays after the step: the update decays too."""
# caught by: test_adamw_step
# mistake: one_of_a_kind
# says: the parameter decays after Adam's step, so the update decays too
# %% adamw_step
@torch.no_grad()
def adamw_step(parameter, gradient, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
    adam_step(parameter, gradient, state, lr, betas, eps)
    parameter.mul_(1 - lr * weight_decay)
