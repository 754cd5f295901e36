"""The first layer, the last to be complete, is reduced in reduce()."""


# caught by: test_Zero2
# mistake: no_overlap
# says: when the backward pass came to its end, layer 0 on rank 0 still had its whole gradients
# %% Zero2: changed
# -         if any(p.grad is None for p in flat.parameters):
# +         if i == 0 or any(p.grad is None for p in flat.parameters):
# @@
# -         """Nothing is left to do."""
# +         """The first layer is left."""
# +         shard = mean_gradient(self.flats[0])
# +         self.gradients[0] = shard if self.gradients[0] is None else self.gradients[0] + shard
