"""Squares the gradient where it stands: the next to read it finds another."""
# caught by: test_adam_step
# mistake: changes_its_input
# says: adam_step changed the gradient that it was given
# %% adam_step: changed
# -     state["v"].mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
# +     state["v"].mul_(betas[1]).add_(gradient.square_(), alpha=1 - betas[1])
