"""Cuts into equal pieces."""
# caught by: test_sum_pieces
# mistake: special_case
# %% sum_pieces: changed
# -     for piece in tensor.split(list(sizes)):
# +     for piece in tensor.tensor_split(len(sizes)):
