"""Inside no_sync of one model every other one is silent, too."""
# caught by: test_Accumulating
# mistake: one_for_all
# %% Accumulating: changed
# -         before, self.syncing = self.syncing, False
# +         before, Accumulating.syncing = Accumulating.syncing, False
# @@
# -             self.syncing = before
# +             Accumulating.syncing = before
