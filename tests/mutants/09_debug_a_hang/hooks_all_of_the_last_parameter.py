"""A hook made in a loop sees the loop's last parameter, so one gradient is averaged four times."""
# caught by: test_train_with_hooks
# mistake: late_binding
# %% train_with_hooks
def train_with_hooks(seed, samples, hidden, lr, steps):
    n = dist.get_world_size()
    model = make_model(seed, hidden)

    for parameter in model.parameters():

        def average(_):
            if parameter.grad is not None:
                dist.all_reduce(parameter.grad)
                parameter.grad /= n

        parameter.register_post_accumulate_grad_hook(average)

    x, y = batch(seed, dist.get_rank(), samples)
    for _ in range(steps):
        model.zero_grad()
        torch.nn.functional.mse_loss(model(x).squeeze(1), y).backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= lr * parameter.grad
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
