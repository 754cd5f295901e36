"""Each layer is clipped by its own norm."""


# caught by: test_clip
# %% clip
def clip(shards, max_norm):
    """Scale all ranks' ``shards`` so that their norm together is at most ``max_norm``. Returns the norm they had."""
    squares = sum(shard.square().sum() for shard in shards)
    dist.all_reduce(squares)
    norm = squares.sqrt()
    for shard in shards:
        own = shard.square().sum()
        dist.all_reduce(own)
        shard *= min(1.0, max_norm / own.sqrt())
    return norm
