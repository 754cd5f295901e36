"""A single rank sends as two do."""


# caught by: test_bytes_a_step
# mistake: special_case
# says: expected 0
# %% bytes_a_step: changed
# -     whole = 4 * rows * columns
# +     whole, n = 4 * rows * columns, max(n, 2)
