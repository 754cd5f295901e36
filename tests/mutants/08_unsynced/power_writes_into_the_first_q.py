"""The new Q is written into the tensor that the caller gave, who may need it."""


# caught by: test_PowerSGD
# mistake: changes_its_input
# says: changed the q that it was made with
# %% PowerSGD: changed
# -         self.q = matrix.T @ p
# +         torch.matmul(matrix.T, p, out=self.q)
