"""The columns of P stay as they are."""


# caught by: test_PowerSGD
# mistake: one_of_a_kind
# says: it is a multiple of what comes without orthonormal columns
# %% PowerSGD: changed
# -         p = torch.linalg.qr(p).Q
