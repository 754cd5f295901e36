"""The columns of P have length 1 and are not orthogonal."""


# caught by: test_PowerSGD
# mistake: one_of_a_kind
# says: the columns of P have length 1 but are not orthogonal
# %% PowerSGD: changed
# -         p = torch.linalg.qr(p).Q
# +         p = p / p.norm(dim=0).clamp(min=1e-12)
