"""The last bucket leaves only when the others have been waited for."""
# caught by: test_backward_pass
# mistake: no_overlap
# %% backward_pass
def backward_pass(layers, cap):
    filling, travelling = [], []
    for layer in reversed(layers):
        filling.append(layer.backward())
        if sum(4 * gradient.numel() for gradient in filling) >= cap:
            flat = torch.cat(filling)
            travelling.append((dist.all_reduce(flat, async_op=True), flat, [g.numel() for g in filling]))
            filling = []
    gradients = []
    for work, flat, sizes in travelling:
        work.wait()
        gradients += (flat / dist.get_world_size()).split(sizes)
    if filling:
        flat = torch.cat(filling)
        dist.all_reduce(flat)
        gradients += (flat / dist.get_world_size()).split([g.numel() for g in filling])
    return gradients[::-1]
