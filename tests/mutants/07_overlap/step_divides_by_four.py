"""The mean of 4 ranks, however many there are."""
# caught by: test_backward_pass
# mistake: some_ranks_only
# says: the gradient of layer 0 is
# %% backward_pass: changed
# -         flat /= dist.get_world_size()
# +         flat /= 4
