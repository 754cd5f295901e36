"""Reduces at the end of the backward pass, in the hook of the first layer: all were there."""


# caught by: test_Zero2
# mistake: stages_mixed_up
# says: during the backward pass rank 0 held 32,880 bytes more than its shard of the gradients
# %% Zero2: changed
# -         flat = self.flats[i]
# -         if any(p.grad is None for p in flat.parameters):
# +         if any(p.grad is None for flat in self.flats for p in flat.parameters):
# @@
# -         shard = mean_gradient(flat)
# -         self.gradients[i] = shard if self.gradients[i] is None else self.gradients[i] + shard
# +         for i, flat in enumerate(self.flats):
# +             shard = mean_gradient(flat)
# +             self.gradients[i] = shard if self.gradients[i] is None else self.gradients[i] + shard
