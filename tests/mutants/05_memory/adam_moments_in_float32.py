"""The moments are float32, whatever the parameter is."""
# caught by: test_adam_step
# mistake: type_fixed
# says: the parameter is right to seven digits only
# %% adam_step: changed
# -         state.update(step=0, m=torch.zeros_like(parameter), v=torch.zeros_like(parameter))
# +         state.update(step=0, m=torch.zeros(parameter.shape), v=torch.zeros(parameter.shape))
