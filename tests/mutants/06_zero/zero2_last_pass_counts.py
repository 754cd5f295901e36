"""A second backward pass takes the place of the first."""


# caught by: test_Zero2
# mistake: state_between_steps
# %% Zero2: changed
# -         self.gradients[i] = shard if self.gradients[i] is None else self.gradients[i] + shard
# +         self.gradients[i] = shard
