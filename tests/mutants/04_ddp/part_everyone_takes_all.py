"""No part at all: every rank computes the whole batch, and the mean of that is right."""
# caught by: test_loss_of_part
# mistake: stages_mixed_up
# says: rank 0 took 24 of 24 samples, at most 6 are its own
# %% loss_of_part
def loss_of_part(model, x, y):
    return (model(x) - y).square().mean()
