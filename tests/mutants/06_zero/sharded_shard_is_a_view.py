"""The shard lies in the memory that is freed."""


# caught by: test_Sharded
# mistake: copy_or_view
# says: the shard has lost its memory
# %% Sharded: changed
# -         self.shard = self.shard.clone()
# +         self.shard = self.shard
