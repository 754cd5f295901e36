"""Each rank makes its own P orthonormal; then the mean is taken."""


# caught by: test_PowerSGD
# mistake: too_early
# says: each rank made its own P orthonormal before the all-reduce
# %% PowerSGD: changed
# -         p = matrix @ self.q
# -         dist.all_reduce(p)
# -         p = torch.linalg.qr(p).Q
# +         p = torch.linalg.qr(matrix @ self.q).Q
# +         dist.all_reduce(p)
# +         p /= dist.get_world_size()
