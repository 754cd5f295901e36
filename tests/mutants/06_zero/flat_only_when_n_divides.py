"""Shards of numel // N elements: the rest belongs to nobody."""


# caught by: test_Flat
# mistake: divisible_only
# says: rank 1 owns [10:20] of 42 elements, expected [10:21]
# %% Flat: changed
# -         start, stop = chunk_bounds(self.whole.numel(), n)[rank : rank + 2].tolist()
# +         start, stop = self.whole.numel() // n * rank, self.whole.numel() // n * (rank + 1)
