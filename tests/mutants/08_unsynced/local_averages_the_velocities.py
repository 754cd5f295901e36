"""What the optimizer remembers is averaged, too."""


# caught by: test_local_sgd
# mistake: too_much_sent
# says: what the optimizer remembers was averaged, too
# %% local_sgd: changed
# -             for p in model.parameters():
# +             for velocity in optimizer.velocities:
# +                 dist.all_reduce(velocity)
# +                 velocity /= dist.get_world_size()
# +             for p in model.parameters():
