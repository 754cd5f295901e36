"""free() frees nothing."""


# caught by: test_Sharded
# %% Sharded: changed
# -         self.whole.untyped_storage().resize_(0)
# +         pass
