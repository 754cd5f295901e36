"""top-k without its indices."""


# caught by: test_bytes_a_step
# mistake: part_missing
# says: the number of bytes is 400, expected 800 (0.5 times it)
# %% bytes_a_step: changed
# -         "top-k": 8 * k,
# +         "top-k": 4 * k,
