"""No optimizer and no helper: gradients from autograd, one message for all of them."""


# %% train_on_tokens
def train_on_tokens(model, batches, lr):
    parameters = list(model.parameters())
    for x, labels in batches:
        known = labels >= 0
        logs = functional.log_softmax(model(x), -1)
        total = -logs[known, labels[known]].sum() + 0 * logs.sum()
        gradients = torch.autograd.grad(total, parameters)
        message = torch.cat([known.sum().double().reshape(1), *[g.flatten() for g in gradients]])
        dist.all_reduce(message)
        flat = nn.utils.parameters_to_vector(parameters).detach() - lr * message[1:] / message[0]
        nn.utils.vector_to_parameters(flat, parameters)


# %% train_in_windows
def train_in_windows(model, batches, window, lr):
    parameters = list(model.parameters())
    for start in range(0, len(batches), window):
        x, y = (torch.cat(side) for side in zip(*batches[start : start + window]))
        gradients = torch.autograd.grad(functional.mse_loss(model(x), y), parameters)
        for p, g in zip(parameters, gradients):
            dist.all_reduce(g)
            p.data.add_(g, alpha=-lr / dist.get_world_size())


# %% train_with_dropout
def train_with_dropout(make, batches, seed, lr):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = make()
    torch.manual_seed(hash((seed, dist.get_rank())) % 2**31)
    parameters = list(model.parameters())
    for x, y in batches:
        for p, g in zip(parameters, torch.autograd.grad((model(x) - y).square().mean(), parameters)):
            dist.all_reduce(g)
            p.data -= lr * g / dist.get_world_size()
    return model, []


# %% train_on_pairs
class Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, own):
        parts = [torch.empty_like(own) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, own.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, gradient):
        total = gradient.contiguous().clone()
        dist.all_reduce(total)
        return total.chunk(dist.get_world_size())[dist.get_rank()]


def train_on_pairs(model, batches, lr):
    parameters = list(model.parameters())
    for a, b in batches:
        both = Gather.apply(torch.stack([model(a), model(b)], 1))
        gradients = torch.autograd.grad(pair_loss(both[:, 0], both[:, 1]), parameters)
        for p, g in zip(parameters, gradients):
            dist.all_reduce(g)
            p.data -= lr * g / dist.get_world_size()


# %% train_with_schedule
def train_with_schedule(model, batches, lr, warmup, total):
    parameters = list(model.parameters())
    for k in range(1, total):
        x, y = batches[k]
        rate = lr * (k / warmup if k < warmup else (total - k) / (total - warmup))
        for p, g in zip(parameters, torch.autograd.grad(functional.mse_loss(model(x), y), parameters)):
            dist.all_reduce(g)
            p.data -= rate * g / dist.get_world_size()


# %% train_past_nan
def train_past_nan(model, batches, lr):
    parameters = list(model.parameters())
    for x, y in batches:
        gradients = torch.autograd.grad(functional.mse_loss(model(x), y), parameters)
        mean = torch.cat([g.flatten() for g in gradients]) / dist.get_world_size()
        dist.all_reduce(mean)
        if mean.isfinite().all():
            nn.utils.vector_to_parameters(nn.utils.parameters_to_vector(parameters).detach() - lr * mean, parameters)


# %% train_with_head
def train_with_head(make_body, make_head, batches, lr):
    body, head = make_body(), make_head()
    parameters = [*body.parameters(), *head.parameters()]
    for p in parameters:
        dist.all_reduce(p.data)
        p.data /= dist.get_world_size()
    for x, y in batches:
        for p, g in zip(parameters, torch.autograd.grad(functional.mse_loss(head(body(x)), y), parameters)):
            dist.all_reduce(g)
            p.data -= lr * g / dist.get_world_size()
    return body, head
