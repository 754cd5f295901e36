"""Numbers, not bytes, of the thin matrices."""


# caught by: test_bytes_a_step
# mistake: units
# says: the number of bytes is 100, expected 400 (0.25 times it)
# %% bytes_a_step: changed
# -         "PowerSGD": 4 * r * (rows + columns),
# +         "PowerSGD": r * (rows + columns),
