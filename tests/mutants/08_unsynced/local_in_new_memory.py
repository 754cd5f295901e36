"""Each parameter is given new memory with the mean: views of the old one are left behind."""


# caught by: test_local_sgd
# mistake: copy_or_view
# says: parameters have other memory now
# %% local_sgd: changed
# -                     dist.all_reduce(p.data)
# -                     p.data /= dist.get_world_size()
# +                     mean = p.detach().clone()
# +                     dist.all_reduce(mean)
# +                     p.data = mean / dist.get_world_size()
