"""The share of the sum: the ranks add up to the whole batch, their mean is an N-th of it."""
# caught by: test_loss_of_part
# mistake: sum_or_mean
# %% loss_of_part
def loss_of_part(model, x, y):
    rank, n = dist.get_rank(), dist.get_world_size()
    return (model(x[rank::n]) - y[rank::n]).square().sum() / y.numel()
