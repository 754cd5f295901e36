"""34 and 5, whatever the bytes of an element are."""
# caught by: test_kept_bytes
# mistake: argument_ignored
# says: expected 299520 (0.538 times it)
# %% kept_bytes: changed
# -         "none": wide * (16 * element + 2 * mask) + square * (2 * element + mask),
# +         "none": 34 * wide + 5 * square,
