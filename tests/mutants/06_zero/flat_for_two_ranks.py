"""One half for rank 0, the other for everybody else."""


# caught by: test_Flat
# mistake: some_ranks_only
# %% Flat: changed
# -         start, stop = chunk_bounds(self.whole.numel(), n)[rank : rank + 2].tolist()
# +         half = self.whole.numel() // 2
# +         start, stop = (0, self.whole.numel()) if n == 1 else (0, half) if rank == 0 else (half, self.whole.numel())
