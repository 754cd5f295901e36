"""One sequence, however many there are."""
# caught by: test_kept_bytes
# mistake: one_for_all
# says: expected 299520 (0.333 times it)
# %% kept_bytes: changed
# -     wide, square = batch * sequence * hidden, heads * sequence**2 * batch
# +     wide, square = sequence * hidden, heads * sequence**2
