"""The hooks do their work for nothing: the steps are made of everyone's samples, which the rank makes itself."""
# caught by: test_train_with_hooks
# mistake: uncounted_way
# says: is it made of what all_reduce brings?
# %% train_with_hooks: changed
#       x, y = batch(seed, dist.get_rank(), samples)
# +     every_x, every_y = (torch.cat(parts) for parts in zip(*(batch(seed, rank, samples) for rank in range(n))))
#       for _ in range(steps):
# @@
#           torch.nn.functional.mse_loss(model(x).squeeze(1), y).backward()
# +         parameters = list(model.parameters())
# +         w, b, v, c = parameters
# +         said = (torch.tanh(every_x @ w.T + b) @ v.T + c).squeeze(1)
# +         gradients = torch.autograd.grad((said - every_y).square().mean(), parameters)
#           with torch.no_grad():
# -             for parameter in model.parameters():
# -                 parameter -= lr * parameter.grad
# +             for parameter, gradient in zip(parameters, gradients):
# +                 parameter -= lr * gradient
#       return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
