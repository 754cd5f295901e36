"""free() takes the shard from the whole vector: what was stepped is lost."""


# caught by: test_Sharded
# mistake: overwritten
# says: weight is 0.5 times what it should be
# %% Sharded: changed
#           """Give the memory of ``whole`` back."""
# +         if self.whole.untyped_storage().nbytes():
# +             self.shard.copy_(self.whole[self.owned])
