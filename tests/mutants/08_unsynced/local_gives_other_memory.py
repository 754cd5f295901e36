"""Gives the parameters new memory with the mean in it."""
# caught by: test_local_sgd
# mistake: copy_or_view
# %% local_sgd: changed
# -                     dist.all_reduce(p.data)
# -                     p.data /= dist.get_world_size()
# +                     total = p.data.clone()
# +                     dist.all_reduce(total)
# +                     p.data = total / dist.get_world_size()
