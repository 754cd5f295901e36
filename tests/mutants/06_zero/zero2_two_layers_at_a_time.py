"""Layers are reduced in pairs."""


# caught by: test_Zero2
# mistake: no_overlap
# says: still had its whole gradients
# %% Zero2: changed
# -         shard = mean_gradient(flat)
# -         self.gradients[i] = shard if self.gradients[i] is None else self.gradients[i] + shard
# +         if i % 2:
# +             return
# +         for j in range(i, min(i + 2, len(self.flats))):
# +             shard = mean_gradient(self.flats[j])
# +             self.gradients[j] = shard if self.gradients[j] is None else self.gradients[j] + shard
