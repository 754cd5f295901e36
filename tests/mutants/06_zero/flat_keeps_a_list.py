"""Keeps the vector's numbers as a list, too."""


# caught by: test_Flat
# mistake: kept_in_memory
# says: the flat keeps 5,136 bytes besides
# %% Flat: changed
#           self.shard = self.whole[self.owned]
# +         self.start = self.whole.tolist()
