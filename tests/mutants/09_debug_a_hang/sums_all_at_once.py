"""The whole tensor in one all-reduce: the sums are right, the pieces are gone."""
# caught by: test_sum_pieces
# mistake: other_algorithm
# %% sum_pieces
def sum_pieces(tensor, sizes):
    dist.all_reduce(tensor)
