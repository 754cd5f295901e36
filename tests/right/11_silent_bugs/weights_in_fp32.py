"""Weights and rates are tensors of torch's default type, fp32."""


# %% train_on_tokens
def train_on_tokens(model, batches, lr):
    """Each rank's mean is weighted by its share of the tokens."""
    optimizer, losses = torch.optim.SGD(model.parameters(), lr), []
    for x, labels in batches:
        optimizer.zero_grad()
        mine = (labels != -100).sum().float()
        everyones = mine.clone()
        dist.all_reduce(everyones)
        share = mine / everyones
        logits = model(x).flatten(0, 1)
        if mine > 0:
            loss = functional.cross_entropy(logits, labels.flatten(), ignore_index=-100) * share
        else:
            loss = logits.sum() * 0.0
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% train_in_windows
def train_in_windows(model, batches, window, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr)
    pending = []

    def step():
        share = torch.tensor(1 / len(pending) / dist.get_world_size())
        for x, y in pending:
            (functional.mse_loss(model(x), y) * share).backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
        optimizer.step()
        optimizer.zero_grad()
        pending.clear()

    for batch in batches:
        pending.append(batch)
        if len(pending) == window:
            step()
    if pending:
        step()


# %% train_with_schedule
def train_with_schedule(model, batches, lr, warmup, total):
    steps = torch.arange(total)
    rates = lr * torch.minimum(steps / warmup, (total - steps).clamp(min=0) / (total - warmup))
    losses = []
    for rate, (x, y) in zip(rates, batches):
        model.zero_grad()
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        average_gradients(model)
        with torch.no_grad():
            for p in model.parameters():
                p.sub_(rate * p.grad)
        losses.append(loss.item())
    return losses, rates.tolist()
