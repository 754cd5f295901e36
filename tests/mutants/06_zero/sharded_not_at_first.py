"""Whole until the first free()."""


# caught by: test_Sharded
# %% Sharded: changed
# -         self.free()
