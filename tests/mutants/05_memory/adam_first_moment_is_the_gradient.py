"""The moments begin with the first gradient and not with 0."""
# caught by: test_adam_step
# mistake: state_between_steps
# %% adam_step: changed
# -         state.update(step=0, m=torch.zeros_like(parameter), v=torch.zeros_like(parameter))
# +         state.update(step=0, m=gradient.clone(), v=gradient.square())
