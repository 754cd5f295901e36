"""Sums a float32 copy of each piece."""
# caught by: test_sum_pieces
# mistake: type_fixed
# %% sum_pieces
def sum_pieces(tensor, sizes):
    for piece in tensor.split(list(sizes)):
        copy = piece.float()
        dist.all_reduce(copy)
        piece.copy_(copy)
