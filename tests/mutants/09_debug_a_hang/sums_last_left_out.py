"""Leaves the last piece out."""
# caught by: test_sum_pieces
# mistake: last_left_out
# %% sum_pieces: changed
# -     for piece in tensor.split(list(sizes)):
# +     for piece in tensor.split(list(sizes))[:-1]:
