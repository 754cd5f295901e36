"""Calls the model once for each of its samples, and adds up."""
# caught by: test_loss_of_part
# mistake: per_piece_or_in_all
# %% loss_of_part
def loss_of_part(model, x, y):
    """This rank's share of ``(model(x) - y).square().mean()``."""
    rank, n = dist.get_rank(), dist.get_world_size()
    total = (model(x[:0]) - y[:0]).square().sum()
    for i in range(rank, len(x), n):
        total = total + (model(x[i : i + 1]) - y[i : i + 1]).square().sum()
    return total / y.numel() * n
