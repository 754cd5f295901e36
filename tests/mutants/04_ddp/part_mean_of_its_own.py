"""The mean over its own samples: right only where all parts have one size."""
# caught by: test_loss_of_part
# mistake: divisible_only
# %% loss_of_part
def loss_of_part(model, x, y):
    rank, n = dist.get_rank(), dist.get_world_size()
    return (model(x[rank::n]) - y[rank::n]).square().mean()
