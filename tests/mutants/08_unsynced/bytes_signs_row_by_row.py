"""Whole bytes for each row."""


# caught by: test_bytes_a_step
# mistake: rounded_wrongly
# says: is 126, expected 16
# %% bytes_a_step: changed
# -         "signs": -(-rows * columns // 8),
# +         "signs": rows * -(-columns // 8),
