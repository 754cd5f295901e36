"""Keeps the whole gradients as NumPy arrays, as attributes of the parameters."""


# caught by: test_Zero2
# mistake: uncounted_way
# says: are kept in NumPy arrays
# %% Zero2: changed
#               return
# +         for p in flat.parameters:
# +             p.before = p.grad.numpy().copy()
#           shard = mean_gradient(flat)
#           self.gradients[i] = shard if self.gradients[i] is None else self.gradients[i] + shard
#
#       def reduce(self):
#           """Nothing is left to do."""
# +         for flat in self.flats:
# +             for p in flat.parameters:
# +                 del p.before
