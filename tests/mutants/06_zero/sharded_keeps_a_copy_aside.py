"""Keeps a copy of the whole vector, and gathers all the same."""


# caught by: test_Sharded
# mistake: kept_in_memory
# says: free() does not give them back
# %% Sharded: changed
#           self.shard = self.shard.clone()
# +         self.start = self.whole.clone()
