"""Counts the passes: every second one is sent."""


# caught by: test_Accumulating
# mistake: some_times_only
# says: started inside no_sync
# %% Accumulating: changed
# -         if self.syncing:
# +         self.passes = getattr(self, 'passes', {})
# +         self.passes[parameter] = self.passes.get(parameter, 0) + 1
# +         if self.syncing or self.passes[parameter] % 7 == 0:
