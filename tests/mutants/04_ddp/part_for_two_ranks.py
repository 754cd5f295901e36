"""One half or the other: right on two ranks."""
# caught by: test_loss_of_part
# mistake: some_ranks_only
# %% loss_of_part
def loss_of_part(model, x, y):
    rank = dist.get_rank() % 2
    mine, targets = x[rank::2], y[rank::2]
    return (model(mine) - targets).square().sum() / y.numel() * 2
