"""Samples that N does not divide are left out."""
# caught by: test_loss_of_part
# mistake: divisible_only
# %% loss_of_part
def loss_of_part(model, x, y):
    rank, n = dist.get_rank(), dist.get_world_size()
    size = len(x) // n
    mine = slice(rank * size, (rank + 1) * size)
    return (model(x[mine]) - y[mine]).square().sum() / y.numel() * n
