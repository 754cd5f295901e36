"""The broken program, handed in under the new name: each rank's own order."""
# caught by: test_sum_pieces
# mistake: not_every_rank
# %% sum_pieces
def sum_pieces(tensor, sizes):
    broken_sums(tensor, sizes)
