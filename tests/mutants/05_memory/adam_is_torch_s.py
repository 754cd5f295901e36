"""Calls torch's Adam."""
# caught by: test_adam_step
# mistake: ready_made
# says: is not to be used here
# %% adam_step: changed
# -     if not state:
# -         state.update(step=0, m=torch.zeros_like(parameter), v=torch.zeros_like(parameter))
# +     if not state:
# +         state["optimizer"] = torch.optim.Adam([parameter], lr=lr, betas=betas, eps=eps)
# +     parameter.grad = gradient
# +     return state["optimizer"].step()
