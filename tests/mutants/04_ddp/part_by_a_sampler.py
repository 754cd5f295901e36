"""As a DistributedSampler: the rest is filled up with the first samples once more."""


# caught by: test_loss_of_part
# mistake: counted_twice
# says: the mean over the ranks of the gradient
# %% loss_of_part: changed
#       rank, n = dist.get_rank(), dist.get_world_size()
# +     more = -len(x) % n
# +     x, y = torch.cat([x, x[:more]]), torch.cat([y, y[:more]])
