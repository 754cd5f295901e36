"""Right on 2 ranks only."""


# caught by: test_mean_gradient
# mistake: some_ranks_only
# %% mean_gradient: changed
# -     vector /= dist.get_world_size()
# +     vector /= 2
