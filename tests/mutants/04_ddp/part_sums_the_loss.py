"""Adds the losses up over the ranks first: communication that nothing needs, and each rank's gradient is N times too small."""
# caught by: test_loss_of_part
# mistake: too_much_sent
# says: rank 0 called all_reduce; it is to send nothing
# %% loss_of_part
def loss_of_part(model, x, y):
    rank, n = dist.get_rank(), dist.get_world_size()
    loss = (model(x[rank::n]) - y[rank::n]).square().sum() / y.numel()
    others = loss.detach().clone()
    dist.all_reduce(others)
    return loss + (others - loss.detach())
