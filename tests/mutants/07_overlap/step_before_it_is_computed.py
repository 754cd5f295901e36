"""Sends a gradient that the layer has not computed yet."""
# caught by: test_backward_pass
# mistake: too_early
# says: it left before layer 5, whose gradient belongs to it, was done
# %% backward_pass
def backward_pass(layers, cap):
    sizes, filling, travelling = [], [], []
    for layer in layers[::-1]:
        filling.append(layer._gradient.clone())
        if sum(4 * gradient.numel() for gradient in filling) >= cap or layer is layers[0]:
            flat = torch.cat(filling)
            travelling.append((dist.all_reduce(flat, async_op=True), flat, [each.numel() for each in filling]))
            for computed in range(len(filling)):
                layers[len(layers) - 1 - len(sizes)].backward()
                sizes.append(computed)
            filling = []
    gradients = []
    for work, flat, numels in travelling:
        work.wait()
        gradients += (flat / dist.get_world_size()).split(numels)
    return gradients[::-1]
