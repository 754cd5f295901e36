"""An all-gather, and then the sum over its row."""


# caught by: test_gossip
# mistake: too_much_sent
# says: rank 0 called all_gather; build it from send and recv
# %% gossip
def gossip(x, weights):
    everyones = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(everyones, x.contiguous())
    return sum(weight * theirs for weight, theirs in zip(weights[dist.get_rank()], everyones, strict=True))
