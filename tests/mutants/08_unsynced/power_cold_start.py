"""Each step begins with the first Q."""


# caught by: test_PowerSGD
# mistake: state_between_steps
# says: it began with the first Q again, not with the Q of the step before
# %% PowerSGD: changed
# -         self.q = matrix.T @ p
# -         dist.all_reduce(self.q)
# -         self.q /= dist.get_world_size()
# -         return p @ self.q.T
# +         q = matrix.T @ p
# +         dist.all_reduce(q)
# +         q /= dist.get_world_size()
# +         return p @ q.T
