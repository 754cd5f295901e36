"""The columns of P have length 1 and are not orthogonal."""


# caught by: test_PowerSGD
# says: on rank 0 in step 1 the approximate matrix is off by up to
# %% PowerSGD: changed
# -         p = torch.linalg.qr(p).Q
# +         p = p / p.norm(dim=0).clamp(min=1e-12)
