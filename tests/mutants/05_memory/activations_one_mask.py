"""One dropout mask of h."""
# caught by: test_activation_bytes
# mistake: part_missing
# %% activation_bytes: changed
# -     return wide * (16 * element + 2 * mask) + square * (2 * element + mask)
# +     return wide * (16 * element + mask) + square * (2 * element + mask)
