"""Scales copies: the gradients stay as they were."""


# caught by: test_clip
# %% clip
def clip(shards, max_norm):
    """Scale all ranks' ``shards`` so that their norm together is at most ``max_norm``. Returns the norm they had."""
    squares = sum(shard.square().sum() for shard in shards)
    dist.all_reduce(squares)
    norm = squares.sqrt()
    if norm > max_norm:
        for shard in shards:
            shard = shard * max_norm / norm
    return norm
