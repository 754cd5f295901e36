"""Parameters without a gradient are left out of the vector."""


# caught by: test_mean_gradient
# %% mean_gradient
def mean_gradient(flat):
    """This rank's shard of the mean gradient of ``flat``; the whole gradients are let go."""
    gradients = [p.grad for p in flat.parameters if p.grad is not None]
    vector = torch.cat([gradient.reshape(-1) for gradient in gradients])
    for p in flat.parameters:
        p.grad = None
    vector /= dist.get_world_size()
    return reduce_scatter(vector).clone()
