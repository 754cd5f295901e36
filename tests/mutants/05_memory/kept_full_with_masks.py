"""The masks stay."""
# caught by: test_kept_bytes
# mistake: part_missing
# %% kept_bytes: changed
# -         "full": wide * element,
# +         "full": wide * (element + 2 * mask),
