"""Gram-Schmidt that leaves a column of zeros as it is: after one matrix of zeros Q is 0 for ever."""


# caught by: test_PowerSGD
# mistake: zeros
# says: after a matrix of zeros Q is 0, and stays 0
# %% PowerSGD: changed
# -         p = torch.linalg.qr(p).Q
# +         for i, column in enumerate(p.T):
# +             for other in p.T[:i]:
# +                 column -= (column @ other) * other
# +             column /= column.norm().clamp(min=1e-12)
