"""no_sync is silent once: in later steps it sends all the same."""


# caught by: test_Accumulating
# mistake: some_times_only
# says: started inside no_sync
# %% Accumulating: changed
# -         before, self.syncing = self.syncing, False
# +         before, self.syncing = self.syncing, getattr(self, "used", False)
# +         self.used = True
