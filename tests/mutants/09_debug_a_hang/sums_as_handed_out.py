"""The broken program, handed in under the new name: each rank's own order."""
# caught by: test_sum_pieces
# %% sum_pieces
def sum_pieces(tensor, sizes):
    broken_sums(tensor, sizes)
