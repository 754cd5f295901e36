"""Selective recomputation takes the other masks along."""
# caught by: test_kept_bytes
# %% kept_bytes: changed
# -         "selective": wide * (16 * element + 2 * mask),
# +         "selective": wide * 16 * element,
