"""Gram-Schmidt that divides by the length of a column of zeros."""


# caught by: test_PowerSGD
# mistake: special_case
# says: there is a nan: was something divided by 0?
# %% PowerSGD: changed
# -         p = torch.linalg.qr(p).Q
# +         columns = []
# +         for column in p.T:
# +             for other in columns:
# +                 column = column - (other @ column) * other
# +             columns.append(column / column.norm())
# +         p = torch.stack(columns, 1)
