"""Parts of a byte."""


# caught by: test_bytes_a_step
# mistake: rounded_wrongly
# says: the number of bytes is 15.75, expected 16 (0.984 times it)
# %% bytes_a_step: changed
# -         "signs": -(-rows * columns // 8),
# +         "signs": rows * columns / 8,
