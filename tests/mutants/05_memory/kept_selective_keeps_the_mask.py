"""The s × s mask stays."""
# caught by: test_kept_bytes
# mistake: part_missing
# %% kept_bytes: changed
# -         "selective": wide * (16 * element + 2 * mask),
# +         "selective": wide * (16 * element + 2 * mask) + square * mask,
