"""The bounds stay tensors: the slice is made of two tensors with one number each."""
# caught by: test_Flat
# says: x
# %% Flat: changed
# -         start, stop = chunk_bounds(self.whole.numel(), n)[rank : rank + 2].tolist()
# +         start, stop = chunk_bounds(self.whole.numel(), n)[rank : rank + 2]
