"""Half of an all-reduce."""


# caught by: test_bytes_a_step
# mistake: part_missing
# says: the number of bytes is 1800, expected 3600 (0.5 times it)
# %% bytes_a_step: changed
# -     return given[method] * (n - 1 if method in ("top-k", "signs") else 2 * (n - 1) / n)
# +     return given[method] * (n - 1 if method in ("top-k", "signs") else (n - 1) / n)
