"""Sends the bucket before the gradient that would make it too large."""
# caught by: test_backward_pass
# mistake: other_algorithm
# %% backward_pass
def backward_pass(layers, cap):
    filling, travelling = [], []

    def send():
        flat = torch.cat(filling)
        travelling.append((dist.all_reduce(flat, async_op=True), flat, [g.numel() for g in filling]))
        filling.clear()

    for layer in reversed(layers):
        gradient = layer.backward()
        if filling and sum(4 * g.numel() for g in filling) + 4 * gradient.numel() > cap:
            send()
        filling.append(gradient)
    send()
    gradients = []
    for work, flat, sizes in travelling:
        work.wait()
        gradients += (flat / dist.get_world_size()).split(sizes)
    return gradients[::-1]
