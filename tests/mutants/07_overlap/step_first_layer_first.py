"""Computes the first layer first."""
# caught by: test_backward_pass
# mistake: order_of_layers
# says: rank 0 computed the layers 0, 1, 2, 3, 4, 5
# %% backward_pass
def backward_pass(layers, cap):
    found = [layer.backward() for layer in layers]
    travelling, filling = [], []
    for number in reversed(range(len(found))):
        filling.append(found[number])
        if sum(4 * each.numel() for each in filling) >= cap or number == 0:
            flat = torch.cat(filling)
            sizes = [each.numel() for each in filling]
            travelling.append((dist.all_reduce(flat, async_op=True), flat, sizes))
            filling = []
    gradients = []
    for work, flat, sizes in travelling:
        work.wait()
        gradients += (flat / dist.get_world_size()).split(sizes)
    return gradients[::-1]
