"""A backward pass is silent if its forward pass was inside no_sync."""
# caught by: test_Accumulating
# mistake: one_of_a_kind
# says: started inside no_sync
# %% Accumulating: changed
# +     def forward(self, *args):
# +         self.sends = self.syncing
# +         return super().forward(*args)
# +
#       def gradient_ready(self, parameter):
# -         if self.syncing:
# +         if self.sends:
