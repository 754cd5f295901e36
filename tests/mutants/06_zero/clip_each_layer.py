"""Each layer is clipped by its own norm."""


# caught by: test_clip
# mistake: one_of_a_kind
# %% clip: changed
# -     if norm > max_norm:
# -         for shard in shards:
# -             shard *= max_norm / norm
# +     for shard in shards:
# +         own = shard.square().sum()
# +         dist.all_reduce(own)
# +         shard *= min(1.0, max_norm / own.sqrt())
