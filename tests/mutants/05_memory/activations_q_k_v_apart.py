"""Counts the input of Q, K and V three times."""
# caught by: test_activation_bytes
# mistake: counted_twice
# %% activation_bytes: changed
# -     return wide * (16 * element + 2 * mask) + square * (2 * element + mask)
# +     return wide * (18 * element + 2 * mask) + square * (2 * element + mask)
