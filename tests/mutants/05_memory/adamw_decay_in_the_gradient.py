"""L2 regularisation passed off as AdamW."""
# caught by: test_adamw_step
# mistake: one_of_a_kind
# says: the decay is added to the gradient: that is L2 regularisation
# %% adamw_step
@torch.no_grad()
def adamw_step(parameter, gradient, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
    adam_step(parameter, gradient + weight_decay * parameter, state, lr, betas, eps)
