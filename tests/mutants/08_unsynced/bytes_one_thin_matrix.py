"""PowerSGD with P alone."""


# caught by: test_bytes_a_step
# mistake: part_missing
# says: the number of bytes is 240, expected 400 (0.6 times it)
# %% bytes_a_step: changed
# -         "PowerSGD": 4 * r * (rows + columns),
# +         "PowerSGD": 4 * r * rows,
