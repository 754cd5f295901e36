"""All ranks agree on an order by one more all-reduce."""
# caught by: test_sum_pieces
# mistake: too_much_sent
# %% sum_pieces: changed
# -     for piece in tensor.split(list(sizes)):
# +     pieces = tensor.split(list(sizes))
# +     largest = torch.stack([piece.abs().max().double() for piece in pieces])
# +     dist.all_reduce(largest, op=dist.ReduceOp.MAX)
# +     for piece in [pieces[i] for i in largest.argsort(descending=True).tolist()]:
