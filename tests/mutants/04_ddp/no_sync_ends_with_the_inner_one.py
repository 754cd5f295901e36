"""The end of an inner no_sync ends the outer one."""
# caught by: test_Accumulating
# mistake: state_between_steps
# says: bytes started inside no_sync
# %% Accumulating: changed
# -         """Backward passes inside only add up gradients on this rank; the next one outside sends the sum."""
# -         before, self.syncing = self.syncing, False
# +         self.syncing = False
# @@
# -             self.syncing = before
# +             self.syncing = True
