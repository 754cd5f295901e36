"""The broken programs, copied and mended in one line each, as most people do."""


# %% report
def report(losses):
    for step in range(len(losses)):
        mean = mean_over_ranks(losses[step])

    distance = mean_over_ranks((losses[-1] - mean).abs())
    if dist.get_rank() == 0:
        return mean.item(), distance.item()
    return None


# %% train
def train(seed, samples, lr, steps):
    x, y = batch(seed, dist.get_rank(), samples)
    w = torch.zeros(4)
    losses = []
    for _ in range(steps):
        error = x @ w - y
        losses.append(error.square().mean().item())
        gradient = 2 * x.T @ error / samples
        gradient /= dist.get_world_size()
        dist.all_reduce(gradient)
        w -= lr * gradient
    return w, losses


# %% train_with_hooks
def train_with_hooks(seed, samples, hidden, lr, steps):
    n = dist.get_world_size()
    model = make_model(seed, hidden)

    def average(gradient):
        dist.all_reduce(gradient)
        gradient /= n

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(lambda parameter: average(parameter.grad))

    x, y = batch(seed, dist.get_rank(), samples)
    for _ in range(steps):
        model.zero_grad()
        torch.nn.functional.mse_loss(model(x).squeeze(1), y).backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= lr * parameter.grad
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


# %% sum_pieces
def sum_pieces(tensor, sizes):
    pieces = tensor.split(list(sizes))
    largest_first = sorted(pieces, key=lambda piece: piece.numel(), reverse=True)
    for piece in largest_first:
        dist.all_reduce(piece)
