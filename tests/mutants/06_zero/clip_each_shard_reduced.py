"""One all-reduce for each shard."""


# caught by: test_clip
# mistake: too_much_sent
# %% clip: changed
# -     squares = sum(shard.square().sum() for shard in shards)
# -     dist.all_reduce(squares)
# +     squares = [shard.square().sum() for shard in shards]
# +     for square in squares:
# +         dist.all_reduce(square)
# +     squares = sum(squares)
