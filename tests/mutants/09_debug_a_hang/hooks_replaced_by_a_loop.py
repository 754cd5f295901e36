"""Right numbers without hooks: the gradients leave after backward, the first layer's first."""
# caught by: test_train_with_hooks
# mistake: no_overlap
# %% train_with_hooks
def train_with_hooks(seed, samples, hidden, lr, steps):
    n = dist.get_world_size()
    model = make_model(seed, hidden)
    x, y = batch(seed, dist.get_rank(), samples)
    for _ in range(steps):
        model.zero_grad()
        torch.nn.functional.mse_loss(model(x).squeeze(1), y).backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= n
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= lr * parameter.grad
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
