"""Sums copies."""
# caught by: test_sum_pieces
# mistake: copy_or_view
# %% sum_pieces: changed
# -         dist.all_reduce(piece)
# +         dist.all_reduce(piece.clone())
