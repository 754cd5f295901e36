"""Q is not all-reduced: every rank has another result."""


# caught by: test_PowerSGD
# mistake: not_exchanged
# says: other ranks have other results
# %% PowerSGD: changed
# -         dist.all_reduce(self.q)
# -         self.q /= dist.get_world_size()
