"""Goes by the first value of each piece."""
# caught by: test_sum_pieces
# mistake: order_of_layers
# %% sum_pieces: changed
# -     for piece in tensor.split(list(sizes)):
# +     for piece in sorted(tensor.split(list(sizes)), key=lambda piece: piece[0].item()):
