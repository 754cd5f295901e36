"""Rank 0 goes by the index, the others still by their own values."""
# caught by: test_sum_pieces
# mistake: not_every_rank
# %% sum_pieces
def sum_pieces(tensor, sizes):
    pieces = list(tensor.split(list(sizes)))
    if dist.get_rank() != 0:
        pieces.sort(key=lambda piece: piece.abs().max().item(), reverse=True)
    for piece in pieces:
        dist.all_reduce(piece)
