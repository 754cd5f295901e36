"""free() moves the whole vector to other memory."""


# caught by: test_Sharded
# mistake: kept_in_memory
# says: free() does not give them back
# %% Sharded: changed
#           """Give the memory of ``whole`` back."""
# +         self.aside = self.whole.clone() if self.whole.untyped_storage().nbytes() else None
