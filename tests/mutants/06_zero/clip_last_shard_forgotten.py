"""Scales all shards but the last."""


# caught by: test_clip
# mistake: last_left_out
# says: shard 1 is 1 times what it was
# %% clip: changed
# -         for shard in shards:
# +         for shard in shards[:-1]:
