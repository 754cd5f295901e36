"""A layer is reduced when the one before it in the model is complete, and the first one at once."""


# caught by: test_Zero2
# mistake: no_overlap
# says: when the backward pass came to layer 8, layer 9 on rank 0 still had
# %% Zero2: changed
# -         shard = mean_gradient(flat)
# -         self.gradients[i] = shard if self.gradients[i] is None else self.gradients[i] + shard
# +         for j in [i + 1, 0] if i == 0 else [i + 1]:
# +             if j < len(self.flats):
# +                 shard = mean_gradient(self.flats[j])
# +                 self.gradients[j] = shard if self.gradients[j] is None else self.gradients[j] + shard
