"""Numbers that do not fill a byte are left out."""


# caught by: test_majority
# mistake: divisible_only
# says: 3 numbers were packed into shape (0,), expected (1,)
# %% majority: changed
# -     bits = torch.zeros(-(-x.numel() // 8) * 8, dtype=torch.int64)
# -     bits[: x.numel()] = x >= 0
# +     bits = (x[: x.numel() // 8 * 8] >= 0).long()
