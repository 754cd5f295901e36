"""Equal shards rounded down; the last rank owns the rest."""


# caught by: test_Flat
# mistake: wrong_place
# %% Flat: changed
# -         start, stop = chunk_bounds(self.whole.numel(), n)[rank : rank + 2].tolist()
# +         size = self.whole.numel() // n
# +         start, stop = rank * size, (rank + 1) * size if rank < n - 1 else self.whole.numel()
