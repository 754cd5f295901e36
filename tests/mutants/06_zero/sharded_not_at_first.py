"""Whole until the first free()."""


# caught by: test_Sharded
# mistake: kept_in_memory
# %% Sharded: changed
# -         self.free()
