"""A tensor of places is the index, where a slice was to be made: that copies the elements."""
# caught by: test_Flat
# mistake: wrong_kind
# says: ), not a slice
# %% Flat: changed
# -         self.owned = slice(start, stop)
# +         self.owned = torch.arange(start, stop)
