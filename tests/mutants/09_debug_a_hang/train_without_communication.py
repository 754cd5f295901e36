"""Every rank trains alone: the loss falls, and nothing is averaged."""
# caught by: test_train
# %% train
def train(seed, samples, lr, steps):
    x, y = batch(seed, dist.get_rank(), samples)
    w = torch.zeros(4)
    losses = []
    for _ in range(steps):
        error = x @ w - y
        losses.append(error.square().mean().item())
        w -= lr * 2 * x.T @ error / samples
    return w, losses
