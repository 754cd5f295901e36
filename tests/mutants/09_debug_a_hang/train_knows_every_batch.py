"""All-reduces its gradient, and takes that of all ranks from everyone's samples, which it makes itself."""
# caught by: test_train
# mistake: uncounted_way
# %% train
def train(seed, samples, lr, steps):
    n = dist.get_world_size()
    x, y = batch(seed, dist.get_rank(), samples)
    every_x, every_y = (torch.cat(parts) for parts in zip(*(batch(seed, rank, samples) for rank in range(n))))
    w = torch.zeros(4)
    losses = []
    for _ in range(steps):
        error = x @ w - y
        losses.append(error.square().mean().item())
        gradient = 2 * x.T @ error / samples
        dist.all_reduce(gradient)
        w -= lr * 2 * every_x.T @ (every_x @ w - every_y) / (n * samples)
    return w, losses
