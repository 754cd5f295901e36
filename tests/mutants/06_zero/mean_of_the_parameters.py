"""Reduces the parameters instead of their gradients."""


# caught by: test_mean_gradient
# %% mean_gradient
def mean_gradient(flat):
    """This rank's shard of the mean gradient of ``flat``; the whole gradients are let go."""
    gradients = [p.detach() for p in flat.parameters]
    vector = torch.cat([gradient.reshape(-1) for gradient in gradients])
    for p in flat.parameters:
        p.grad = None
    vector /= dist.get_world_size()
    return reduce_scatter(vector).clone()
