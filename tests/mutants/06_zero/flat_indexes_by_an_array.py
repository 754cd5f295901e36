"""The two bounds, an array, are the index: that takes two elements and copies them, where a slice was to be made."""
# caught by: test_Flat
# mistake: wrong_kind
# %% Flat: changed
# -         start, stop = chunk_bounds(self.whole.numel(), n)[rank : rank + 2].tolist()
# -         self.owned = slice(start, stop)
# +         self.owned = chunk_bounds(self.whole.numel(), n)[rank : rank + 2]
