"""Selective recomputation takes the other masks along."""
# caught by: test_kept_bytes
# mistake: wrong_ones_dropped
# %% kept_bytes: changed
# -         "selective": wide * (16 * element + 2 * mask),
# +         "selective": wide * 16 * element,
