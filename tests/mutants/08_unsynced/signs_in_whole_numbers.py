"""Unpacks to whole numbers."""


# caught by: test_majority
# mistake: wrong_kind
# says: what was unpacked is torch.int64, expected torch.float32
# %% majority: changed
# -     return 2.0 * bits.view(-1)[:numel] - 1
# +     return 2 * bits.view(-1)[:numel] - 1
