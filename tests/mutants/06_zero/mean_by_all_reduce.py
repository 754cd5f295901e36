"""An all-reduce where a reduce-scatter was to do: twice the traffic, the same shard."""


# caught by: test_mean_gradient
# %% mean_gradient
def mean_gradient(flat):
    """This rank's shard of the mean gradient of ``flat``; the whole gradients are let go."""
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in flat.parameters]
    vector = torch.cat([gradient.reshape(-1) for gradient in gradients])
    for p in flat.parameters:
        p.grad = None
    vector /= dist.get_world_size()
    import ringzero

    return ringzero.all_reduce(vector)[flat.owned].clone()
