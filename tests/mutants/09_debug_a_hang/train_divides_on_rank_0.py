"""Only rank 0 divides by the number of ranks."""
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
        if dist.get_rank() == 0:
            gradient /= dist.get_world_size()
        w -= lr * gradient
    return w, losses
