"""Adds a little to every number, so that nothing is ever divided by 0: zeros become something."""


# caught by: test_PowerSGD
# mistake: special_case
# says: in step 1 the approximate matrix
# %% PowerSGD: changed
# -         p = matrix @ self.q
# +         p = (matrix + 1e-3) @ self.q
# @@
# -         self.q = matrix.T @ p
# +         self.q = (matrix + 1e-3).T @ p
