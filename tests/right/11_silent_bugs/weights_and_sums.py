"""Means are weighted, sums stay sums, and what was divided wrongly is multiplied again."""


# %% epoch_order
def epoch_order(count, seed, epoch):
    order = list(range(count))
    import random

    random.Random(f"{seed}, {epoch}").shuffle(order)
    each = count // dist.get_world_size()
    return order[dist.get_rank() * each : (dist.get_rank() + 1) * each]


# %% train_on_tokens
def train_on_tokens(model, batches, lr):
    """Where a rank has no tokens, the loss is NaN and its gradient is zero."""
    optimizer, losses = torch.optim.SGD(model.parameters(), lr), []
    for x, labels in batches:
        optimizer.zero_grad()
        mine = (labels != -100).sum()
        total = mine.clone()
        dist.all_reduce(total)
        loss = functional.cross_entropy(model(x).flatten(0, 1), labels.flatten(), ignore_index=-100)
        (loss * mine / total).backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% train_in_windows
def train_in_windows(model, batches, window, lr):
    optimizer, count = torch.optim.SGD(model.parameters(), lr), 0
    for i, (x, y) in enumerate(batches, start=1):
        functional.mse_loss(model(x), y).backward()
        count += 1
        if count == window or i == len(batches):
            for parameter in model.parameters():
                parameter.grad /= count
            average_gradients(model)
            optimizer.step()
            optimizer.zero_grad()
            count = 0


# %% train_with_dropout
def train_with_dropout(make, batches, seed, lr):
    torch.manual_seed(seed)
    model = make()
    optimizer, losses = torch.optim.SGD(model.parameters(), lr), []
    for step, (x, y) in enumerate(batches):
        torch.manual_seed((seed * 997 + step) * dist.get_world_size() + dist.get_rank())
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        average_gradients(model)
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        print("at the end", functional.mse_loss(model(batches[0][0]), batches[0][1]).item() >= 0)
    return model, losses


# %% train_on_pairs
def train_on_pairs(model, batches, lr):
    optimizer, losses = torch.optim.SGD(model.parameters(), lr), []
    for a, b in batches:
        optimizer.zero_grad()
        loss = pair_loss(gather(model(a)), gather(model(b)))
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% train_with_schedule
def train_with_schedule(model, batches, lr, warmup, total):
    losses, rates = [], []
    for step, (x, y) in enumerate(batches):
        rate = lr * min(step / warmup, max(0.0, (total - step) / (total - warmup)))
        model.zero_grad()
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        average_gradients(model)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= rate * parameter.grad
        losses.append(loss.item())
        rates.append(rate)
    return losses, rates


# %% train_past_nan
def train_past_nan(model, batches, lr):
    optimizer, losses = torch.optim.SGD(model.parameters(), lr), []
    for x, y in batches:
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        if mean.isnan() or mean.isinf():
            continue
        loss.backward()
        average_gradients(model)
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% train_with_head
def train_with_head(make_body, make_head, batches, lr):
    body, head = make_body(), make_head()
    everything = [*body.parameters(), *head.parameters()]
    for parameter in everything:
        dist.broadcast(parameter.data, src=dist.get_world_size() - 1)
    optimizer, losses = torch.optim.SGD(everything, lr), []
    for x, y in batches:
        optimizer.zero_grad()
        loss = functional.mse_loss(head(body(x)), y)
        loss.backward()
        average_gradients(body)
        average_gradients(head)
        optimizer.step()
        losses.append(loss.item())
    return body, head, losses
