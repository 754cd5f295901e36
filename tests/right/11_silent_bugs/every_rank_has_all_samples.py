"""Gathers the samples, and trains on all of them on each rank: wasteful, and right."""


# %% train_on_tokens
def everything(tensor):
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, tensor.contiguous())
    return torch.cat(parts)


def train_on_tokens(model, batches, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr)
    for x, labels in batches:
        optimizer.zero_grad()
        logits, labels = model(everything(x)), everything(labels)
        functional.cross_entropy(logits.flatten(0, 1), labels.flatten()).backward()
        optimizer.step()


# %% train_in_windows
def all_of_it(tensor):
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, tensor)
    return torch.cat(parts)


def train_in_windows(model, batches, window, lr):
    optimizer, left = torch.optim.SGD(model.parameters(), lr), list(batches)
    while left:
        some, left = left[:window], left[window:]
        x, y = (torch.cat([all_of_it(batch[side]) for batch in some]) for side in (0, 1))
        optimizer.zero_grad()
        functional.mse_loss(model(x), y).backward()
        optimizer.step()


# %% train_on_pairs
def from_all(tensor):
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, tensor)
    return torch.cat(parts)


def train_on_pairs(model, batches, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr)
    for a, b in batches:
        optimizer.zero_grad()
        pair_loss(model(from_all(a)), model(from_all(b))).backward()
        optimizer.step()


# %% train_past_nan
def together(tensor):
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, tensor)
    return torch.cat(parts)


def train_past_nan(model, batches, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr)
    for x, y in batches:
        optimizer.zero_grad()
        loss = functional.mse_loss(model(together(x)), together(y))
        if torch.isnan(loss):
            continue
        loss.backward()
        optimizer.step()
