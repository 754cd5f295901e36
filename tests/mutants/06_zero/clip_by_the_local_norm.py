"""Each rank clips by the norm of what it has."""


# caught by: test_clip
# %% clip
def clip(shards, max_norm):
    """Scale all ranks' ``shards`` so that their norm together is at most ``max_norm``. Returns the norm they had."""
    squares = sum(shard.square().sum() for shard in shards)
    norm = squares.sqrt()
    if norm > max_norm:
        for shard in shards:
            shard *= max_norm / norm
    return norm
