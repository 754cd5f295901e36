"""The matrix that was given is changed."""


# caught by: test_PowerSGD
# mistake: changes_its_input
# says: rank 0 changed its matrix
# %% PowerSGD: changed
# -         p = matrix @ self.q
# +         matrix /= dist.get_world_size()
# +         p = matrix @ self.q
# @@
# -         self.q /= dist.get_world_size()
