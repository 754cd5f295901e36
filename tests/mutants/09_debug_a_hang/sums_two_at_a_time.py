"""Two pieces that are neighbours go together."""
# caught by: test_sum_pieces
# mistake: too_much_sent
# %% sum_pieces: changed
# -     for piece in tensor.split(list(sizes)):
# +     for piece in tensor.split([sum(sizes[i : i + 2]) for i in range(0, len(sizes), 2)]):
