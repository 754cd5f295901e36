"""Computes all layers, then sends all buckets."""
# caught by: test_backward_pass
# mistake: no_overlap
# says: but it left when layer
# %% backward_pass
def backward_pass(layers, cap):
    found = [layer.backward() for layer in reversed(layers)]
    travelling, filling = [], []
    for number, gradient in enumerate(found, 1):
        filling.append(gradient)
        if sum(4 * each.numel() for each in filling) >= cap or number == len(found):
            flat = torch.cat(filling)
            sizes = [each.numel() for each in filling]
            travelling.append((dist.all_reduce(flat, async_op=True), flat, sizes))
            filling = []
    gradients = []
    for work, flat, sizes in travelling:
        work.wait()
        gradients += (flat / dist.get_world_size()).split(sizes)
    return gradients[::-1]
