"""The broken programs, copied and mended in a line or two each, as most people do."""


# %% epoch_order
def epoch_order(count, seed, epoch):
    rank, n = dist.get_rank(), dist.get_world_size()
    source = torch.Generator("cpu").manual_seed(seed + epoch)
    order = torch.randperm(count, generator=source, device="cpu").tolist()
    return order[rank::n]


# %% train_on_tokens
def train_on_tokens(model, batches, lr):
    optimizer, losses = torch.optim.SGD(model.parameters(), lr), []
    for x, labels in batches:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x).flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum")
        count = (labels != -100).sum().double()
        dist.all_reduce(count)
        loss = loss / (count / dist.get_world_size())
        loss.backward()
        average_gradients(model)
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% train_in_windows
def train_in_windows(model, batches, window, lr):
    optimizer, lengths = torch.optim.SGD(model.parameters(), lr), []
    rest = len(batches) % window
    for i, (x, y) in enumerate(batches):
        in_the_rest = i >= len(batches) - rest
        loss = functional.mse_loss(model(x), y) / (rest if in_the_rest else window)
        loss.backward()
        if (i + 1) % window == 0 or i + 1 == len(batches):
            before = parameters_of(model)
            average_gradients(model)
            optimizer.step()
            optimizer.zero_grad()
            lengths.append((parameters_of(model) - before).norm().item())
    return lengths


# %% train_with_dropout
def train_with_dropout(make, batches, seed, lr):
    torch.manual_seed(seed)
    model = make()
    torch.manual_seed(seed + dist.get_rank())
    optimizer, losses = torch.optim.SGD(model.parameters(), lr), []
    for x, y in batches:
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        average_gradients(model)
        optimizer.step()
        losses.append(loss.item())
    return model, losses


# %% train_on_pairs
def train_on_pairs(model, batches, lr):
    optimizer, losses = torch.optim.SGD(model.parameters(), lr), []
    for a, b in batches:
        optimizer.zero_grad()
        loss = pair_loss(gather(model(a)), gather(model(b)))
        loss.backward()
        average_gradients(model)
        for parameter in model.parameters():
            parameter.grad *= dist.get_world_size()
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% train_with_schedule
def train_with_schedule(model, batches, lr, warmup, total):
    n = dist.get_world_size()
    warmup, total = n * warmup, n * total  # of one GPU's batches

    def up_and_down(step):
        return min(step / warmup, max(0.0, (total - step) / (total - warmup)))

    optimizer = torch.optim.SGD(model.parameters(), lr)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, up_and_down)
    losses, rates = [], []
    for x, y in batches:
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        average_gradients(model)
        losses.append(loss.item())
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        for _ in range(dist.get_world_size()):
            schedule.step()
    return losses, rates


# %% train_past_nan
def train_past_nan(model, batches, lr):
    optimizer, losses = torch.optim.SGD(model.parameters(), lr), []
    for x, y in batches:
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        average_gradients(model)
        if all(parameter.grad.isfinite().all() for parameter in model.parameters()):
            optimizer.step()
            losses.append(loss.item())
    return losses


# %% train_with_head
def train_with_head(make_body, make_head, batches, lr):
    body = make_body()
    model = Averaged(body)
    head = Averaged(make_head())
    optimizer, losses = torch.optim.SGD([*body.parameters(), *head.module.parameters()], lr), []
    for x, y in batches:
        optimizer.zero_grad()
        loss = functional.mse_loss(head(model(x)), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return body, head.module, losses
