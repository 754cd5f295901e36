"""The hook averages a copy of the gradient: the same messages, and none of them is used."""
# caught by: test_train_with_hooks
# %% train_with_hooks
def train_with_hooks(seed, samples, hidden, lr, steps):
    n = dist.get_world_size()
    model = make_model(seed, hidden)

    def average(parameter):
        gradient = parameter.grad.clone()
        dist.all_reduce(gradient)
        gradient /= n

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(average)

    x, y = batch(seed, dist.get_rank(), samples)
    for _ in range(steps):
        model.zero_grad()
        torch.nn.functional.mse_loss(model(x).squeeze(1), y).backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= lr * parameter.grad
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
