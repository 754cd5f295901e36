"""Keeps a copy of the vector, to compare with later."""


# caught by: test_Flat
# mistake: kept_in_memory
# says: the flat keeps 2,568 bytes besides the vector of 2,568
# %% Flat: changed
#           self.shard = self.whole[self.owned]
# +         self.start = self.whole.clone()
