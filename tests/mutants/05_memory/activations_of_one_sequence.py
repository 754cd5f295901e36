"""The batch is left out of the s × s matrices."""
# caught by: test_activation_bytes
# mistake: part_missing
# says: the bytes of a layer is 552960, expected 663552 (0.833 times it)
# %% activation_bytes: changed
# -     wide, square = batch * sequence * hidden, heads * sequence**2 * batch
# +     wide, square = batch * sequence * hidden, heads * sequence**2
