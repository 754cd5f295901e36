"""Gathers the others' shards into new memory, in which its own was never written."""
# caught by: test_Sharded
# mistake: overwritten
# says: the rank's own part of whole is not its shard: write the shard there
# %% Sharded: changed
# -         self.whole[self.owned] = self.shard
