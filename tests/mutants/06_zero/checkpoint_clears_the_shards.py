"""Clears the shards that it has sent."""
# caught by: test_checkpoint
# mistake: changes_its_input
# says: is not what it was before the checkpoint
# %% checkpoint: changed
#               all_gather(whole)
# +             shard.zero_()
