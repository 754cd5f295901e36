"""Divides by the number of ranks that the broken program ran on."""
# caught by: test_train
# %% train
def train(seed, samples, lr, steps):
    x, y = batch(seed, dist.get_rank(), samples)
    w = torch.zeros(4)
    losses = []
    for _ in range(steps):
        error = x @ w - y
        losses.append(error.square().mean().item())
        gradient = 2 * x.T @ error / samples
        dist.all_reduce(gradient)
        w -= lr * gradient / 4
    return w, losses
