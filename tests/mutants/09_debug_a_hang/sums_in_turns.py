"""Starts all and waits for none."""
# caught by: test_sum_pieces
# mistake: never_waits
# %% sum_pieces: changed
# -         dist.all_reduce(piece)
# +         dist.all_reduce(piece, async_op=True)
