"""The gradient that was summed is added to the next."""
# caught by: test_train
# mistake: state_between_steps
# %% train: changed
#       losses = []
# +     gradient = torch.zeros(4)
#       for _ in range(steps):
# @@
#           losses.append(error.square().mean().item())
# -         gradient = 2 * x.T @ error / samples
# +         gradient = gradient + 2 * x.T @ error / samples
#           dist.all_reduce(gradient)
