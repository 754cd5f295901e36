"""All ranks agree on a gradient of zero."""
# caught by: test_train
# %% train
def train(seed, samples, lr, steps):
    x, y = batch(seed, dist.get_rank(), samples)
    w = torch.zeros(4)
    losses = []
    for _ in range(steps):
        error = x @ w - y
        losses.append(error.square().mean().item())
        gradient = torch.zeros(4)
        dist.all_reduce(gradient)
        w -= lr * gradient / dist.get_world_size()
    return w, losses
