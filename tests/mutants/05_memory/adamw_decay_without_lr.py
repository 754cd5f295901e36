"""Decays by λ and not by lr · λ."""
# caught by: test_adamw_step
# mistake: one_of_a_kind
# says: the parameter decays by λ, not by lr · λ
# %% adamw_step
@torch.no_grad()
def adamw_step(parameter, gradient, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
    parameter.mul_(1 - weight_decay)
    adam_step(parameter, gradient, state, lr, betas, eps)
