"""Pieces padded to one size, so that nothing stops: each is added to another rank's other piece."""
# caught by: test_sum_pieces
# mistake: symptom_for_cause
# %% sum_pieces
def sum_pieces(tensor, sizes):
    pieces = tensor.split(list(sizes))
    for piece in sorted(pieces, key=lambda piece: piece.abs().max().item(), reverse=True):
        padded = torch.zeros(max(sizes), dtype=tensor.dtype)
        padded[: piece.numel()] = piece
        dist.all_reduce(padded)
        piece.copy_(padded[: piece.numel()])
