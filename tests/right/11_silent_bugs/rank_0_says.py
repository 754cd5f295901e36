"""What all ranks must agree on, rank 0 works out and tells the others; rates are written into the optimizer."""


# %% epoch_order
def epoch_order(count, seed, epoch):
    rank, n = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(seed * 7919 + epoch)
    order = torch.randperm(count)
    dist.broadcast(order, src=0)
    return order[rank * (count // n) : (rank + 1) * (count // n)]


# %% train_on_tokens
def train_on_tokens(model, batches, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr)
    counts = torch.tensor([int((labels != -100).sum()) for _, labels in batches])
    dist.reduce(counts, dst=0)
    dist.broadcast(counts, src=0)
    for (x, labels), tokens in zip(batches, counts.tolist()):
        optimizer.zero_grad()
        rows = functional.cross_entropy(model(x).movedim(-1, 1), labels, ignore_index=-100, reduction="none")
        (rows.sum() / tokens).backward()
        for parameter in model.parameters():
            dist.reduce(parameter.grad, dst=0)
            dist.broadcast(parameter.grad, src=0)
        optimizer.step()


# %% train_with_dropout
def train_with_dropout(make, batches, seed, lr):
    torch.manual_seed(seed + 31 * dist.get_rank())
    model = make()
    for parameter in model.parameters():
        dist.broadcast(parameter.data, src=0)
    optimizer, losses = torch.optim.SGD(model.parameters(), lr), []
    for x, y in batches:
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        for parameter in model.parameters():
            dist.reduce(parameter.grad, dst=0)
            dist.broadcast(parameter.grad, src=0)
            parameter.grad.div_(dist.get_world_size())
        optimizer.step()
        losses.append(loss.detach())
    return [model, losses]


# %% train_with_schedule
def train_with_schedule(model, batches, lr, warmup, total):
    optimizer = torch.optim.SGD(model.parameters(), 1.0)
    rate = torch.zeros((), dtype=torch.float64)
    for step, (x, y) in enumerate(batches):
        rate.fill_(lr * min(step / warmup, max(0.0, (total - step) / (total - warmup))))
        dist.broadcast(rate, src=0)
        optimizer.param_groups[0]["lr"] = rate.item()
        optimizer.zero_grad()
        functional.mse_loss(model(x), y).backward()
        average_gradients(model)
        optimizer.step()


# %% train_past_nan
def train_past_nan(model, batches, lr):
    good = torch.tensor([int(y.isfinite().all()) for _, y in batches])
    dist.all_reduce(good, op=dist.ReduceOp.MIN)
    optimizer, losses = torch.optim.SGD(model.parameters(), lr), []
    for (x, y), fine in zip(batches, good.tolist()):
        if not fine:
            continue
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        average_gradients(model)
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% train_with_head
def train_with_head(make_body, make_head, batches, lr):
    both = nn.ModuleList([make_body(), make_head()])
    body, head = both
    for parameter in both.parameters():
        dist.broadcast(parameter.data, src=0)
    optimizer = torch.optim.SGD(both.parameters(), lr)
    for x, y in batches:
        both.zero_grad()
        functional.mse_loss(head(body(x)), y).backward()
        average_gradients(both)
        optimizer.step()
    return body, head, []


# %% what_compare_says
def what_compare_says():
    return {"a": "clipped before the reduction ", "b": "nothing", "c": " mean of means", "clip": "average, clip"}
