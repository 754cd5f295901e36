"""A weighted mean, which is nan on a rank that has no sample."""
# caught by: test_loss_of_part
# mistake: divisible_only
# %% loss_of_part
def loss_of_part(model, x, y):
    rank, n = dist.get_rank(), dist.get_world_size()
    mine, targets = x[rank::n], y[rank::n]
    return (model(mine) - targets).square().mean() * len(mine) / len(x) * n
