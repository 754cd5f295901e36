"""Losses before the first step and after each; modules called by ``forward``."""


# %% train_with_dropout
def train_with_dropout(make, batches, seed, lr):
    torch.manual_seed(seed)
    model = make()
    torch.manual_seed(seed + 1 + dist.get_rank())
    print(model(batches[0][0])[0])
    optimizer, losses = torch.optim.SGD(model.parameters(), lr), []
    for x, y in batches:
        optimizer.zero_grad()
        functional.mse_loss(model(x), y).backward()
        average_gradients(model)
        optimizer.step()
        model.eval()
        losses.append(functional.mse_loss(model(x), y).item())
        model.train()
    return model, losses


# %% train_with_head
def train_with_head(make_body, make_head, batches, lr):
    body, head = make_body(), make_head()
    print("before", functional.mse_loss(head(body(batches[0][0])), batches[0][1]).item())
    both = [*body.parameters(), *head.parameters()]
    for p in both:
        dist.broadcast(p.data, 0)
    optimizer, losses = torch.optim.SGD(both, lr), []
    for x, y in batches:
        optimizer.zero_grad()
        loss = functional.mse_loss(head.forward(body.forward(x)), y)
        loss.backward()
        for p in both:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
        optimizer.step()
        losses.append(loss.item())
    return body, head, losses
