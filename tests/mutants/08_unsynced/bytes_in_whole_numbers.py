"""Divides without the rest."""


# caught by: test_bytes_a_step
# mistake: rounded_wrongly
# says: the number of bytes is
# %% bytes_a_step: changed
# -     return given[method] * (n - 1 if method in ("top-k", "signs") else 2 * (n - 1) / n)
# +     return given[method] * (n - 1) if method in ("top-k", "signs") else 2 * (n - 1) * given[method] // n
