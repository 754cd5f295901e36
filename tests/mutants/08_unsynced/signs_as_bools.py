"""A bool for each number: eight times the bytes."""


# caught by: test_majority
# mistake: too_much_sent
# says: 64 numbers were packed into shape (64,), expected (8,)
# %% majority: changed
# -     bits = torch.zeros(-(-x.numel() // 8) * 8, dtype=torch.int64)
# -     bits[: x.numel()] = x >= 0
# -     return (bits.view(-1, 8) << torch.arange(8)).sum(1).to(torch.uint8)
# +     return (x >= 0).to(torch.uint8)
# @@
# -     bits = packed.long()[:, None] >> torch.arange(8) & 1
# +     bits = packed.long()
