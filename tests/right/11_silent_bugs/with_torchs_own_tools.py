"""DistributedSampler, torch's gather with gradients, one schedule after another."""


# %% epoch_order
def epoch_order(count, seed, epoch):
    sampler = torch.utils.data.DistributedSampler(
        range(count), num_replicas=dist.get_world_size(), rank=dist.get_rank(), shuffle=True, seed=10_000 * seed
    )
    sampler.set_epoch(epoch)
    return list(sampler)


# %% train_on_tokens
def train_on_tokens(model, batches, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for x, labels in batches:
        tokens = torch.tensor(float((labels >= 0).sum()), dtype=torch.float64)
        dist.all_reduce(tokens)
        criterion = nn.CrossEntropyLoss(reduction="sum", ignore_index=-100)
        criterion(model(x).reshape(-1, model(x).shape[-1]), labels.reshape(-1)).backward()
        flat = torch.cat([p.grad.flatten() for p in model.parameters()])
        dist.all_reduce(flat)
        for p, g in zip(model.parameters(), flat.split([p.numel() for p in model.parameters()])):
            p.grad = (g / tokens).view_as(p)
        optimizer.step()
        optimizer.zero_grad()


# %% train_on_pairs
def train_on_pairs(model, batches, lr):
    from torch.distributed.nn.functional import all_gather

    optimizer, losses = torch.optim.SGD(model.parameters(), lr), []
    for a, b in batches:
        optimizer.zero_grad()
        loss = pair_loss(torch.cat(all_gather(model(a))), torch.cat(all_gather(model(b))))
        loss.backward()
        average_gradients(model)
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% train_with_schedule
def train_with_schedule(model, batches, lr, warmup, total):
    optimizer = torch.optim.SGD(model.parameters(), lr)
    schedules = [
        torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: k / warmup),
        torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: 1 - k / (total - warmup)),
    ]
    schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, schedules, milestones=[warmup])
    for x, y in batches:
        optimizer.zero_grad()
        functional.mse_loss(model(x), y).backward()
        average_gradients(model)
        optimizer.step()
        schedule.step()
