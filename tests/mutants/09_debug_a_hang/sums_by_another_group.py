"""All-reduces of zeros, a piece each; the sum comes whole, by another group."""
# caught by: test_sum_pieces
# mistake: uncounted_way
# says: raised RuntimeError: use the default process group: what travels by another group or a store is not counted
# %% sum_pieces
def sum_pieces(tensor, sizes):
    for piece in tensor.split(list(sizes)):
        dist.all_reduce(torch.zeros_like(piece))
    dist.all_reduce(tensor, group=dist.new_group(backend="gloo"))
