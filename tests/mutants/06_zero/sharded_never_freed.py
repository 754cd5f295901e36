"""free() frees nothing."""


# caught by: test_Sharded
# mistake: kept_in_memory
# %% Sharded: changed
# -         self.whole.untyped_storage().resize_(0)
# +         pass
