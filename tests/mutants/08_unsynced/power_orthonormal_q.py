"""The columns of Q are made orthonormal, not those of P."""


# caught by: test_PowerSGD
# mistake: wrong_place
# says: in step 1
# %% PowerSGD: changed
# -         p = torch.linalg.qr(p).Q
# +         p /= dist.get_world_size()
# @@
# -         self.q /= dist.get_world_size()
# +         self.q = torch.linalg.qr(self.q).Q
