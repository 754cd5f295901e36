"""Stops at the first parameter that is frozen."""


# caught by: test_local_sgd
# mistake: last_left_out
# says: before step 4
# %% local_sgd: changed
# -                 if p.requires_grad:
# -                     dist.all_reduce(p.data)
# -                     p.data /= dist.get_world_size()
# +                 if not p.requires_grad:
# +                     break
# +                 dist.all_reduce(p.data)
# +                 p.data /= dist.get_world_size()
