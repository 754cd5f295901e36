"""Gathers among n ranks, its own share among them."""


# caught by: test_bytes_a_step
# mistake: one_off
# says: 2 times it
# %% bytes_a_step: changed
# -     return given[method] * (n - 1 if method in ("top-k", "signs") else 2 * (n - 1) / n)
# +     return given[method] * (n if method in ("top-k", "signs") else 2 * (n - 1) / n)
