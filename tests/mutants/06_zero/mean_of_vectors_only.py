"""Gradients are put together without laying them out: right only where all are vectors."""
# caught by: test_mean_gradient
# mistake: special_case
# %% mean_gradient: changed
# -     vector = torch.cat([gradient.reshape(-1) for gradient in gradients])
# +     vector = torch.cat(gradients)
