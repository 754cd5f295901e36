"""The mean is a new tensor, which nobody looks at."""


# caught by: test_local_sgd
# mistake: copy_or_view
# says: the vector of parameters is 4 times what it should be
# %% local_sgd: changed
# -                     p.data /= dist.get_world_size()
# +                     p = p / dist.get_world_size()
