"""A barrier before each all-reduce: every rank passes every barrier, and the orders still differ."""
# caught by: test_sum_pieces
# mistake: symptom_for_cause
# %% sum_pieces
def sum_pieces(tensor, sizes):
    pieces = tensor.split(list(sizes))
    for piece in sorted(pieces, key=lambda piece: piece.abs().max().item(), reverse=True):
        dist.barrier()
        dist.all_reduce(piece)
