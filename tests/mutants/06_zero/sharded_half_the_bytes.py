"""Asks for as many bytes as there are elements."""


# caught by: test_Sharded
# mistake: units
# %% Sharded: changed
# -         self.whole.untyped_storage().resize_(self.whole.nbytes)
# +         self.whole.untyped_storage().resize_(self.whole.numel())
