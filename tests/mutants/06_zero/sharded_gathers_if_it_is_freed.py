"""gather() does nothing where the vector is there."""


# caught by: test_Sharded
# mistake: special_case
# %% Sharded: changed
#           """Let all parameters have their values."""
# +         if self.whole.untyped_storage().nbytes():
# +             return
