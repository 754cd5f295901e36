"""Scales up, too."""


# caught by: test_clip
# mistake: special_case
# %% clip: changed
# -     if norm > max_norm:
# -         for shard in shards:
# -             shard *= max_norm / norm
# +     for shard in shards:
# +         shard *= max_norm / norm
