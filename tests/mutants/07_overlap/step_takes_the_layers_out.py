"""Takes the layers out of the list that it was given: the next step has none."""
# caught by: test_backward_pass
# mistake: changes_its_input
# %% backward_pass
def backward_pass(layers, cap):
    filling, travelling = [], []
    while layers:
        filling.append(layers.pop().backward())
        if sum(4 * gradient.numel() for gradient in filling) >= cap or not layers:
            flat = torch.cat(filling)
            travelling.append((dist.all_reduce(flat, async_op=True), flat, [g.numel() for g in filling]))
            filling = []
    gradients = []
    for work, flat, sizes in travelling:
        work.wait()
        gradients += (flat / dist.get_world_size()).split(sizes)
    return gradients[::-1]
