"""One Q for all matrices: two of them take each other's."""
# caught by: test_PowerSGD
# mistake: one_for_all
# %% PowerSGD: changed
# -         self.q = q
# +         PowerSGD.q = q
# @@
# -         self.q = matrix.T @ p
# -         dist.all_reduce(self.q)
# -         self.q /= dist.get_world_size()
# +         PowerSGD.q = matrix.T @ p
# +         dist.all_reduce(PowerSGD.q)
# +         PowerSGD.q /= dist.get_world_size()
