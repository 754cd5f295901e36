"""Reduced to columns by Gram-Schmidt over the rows' number: wide matrices lose columns."""


# caught by: test_PowerSGD
# mistake: wrong_kind
# says: in step 1 the approximate matrix is
# %% PowerSGD: changed
# -         p = torch.linalg.qr(p).Q
# +         p = torch.linalg.qr(p).Q
# +         if p.shape[0] < matrix.shape[1]:
# +             p = p[:, :2]
# +             self.q = self.q[:, :2]
