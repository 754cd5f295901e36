"""Velocities are averaged, too, though all ranks have the same."""


# caught by: test_OuterStep
# mistake: too_much_sent
# says: in round 1 rank 0 gave all_reduce 240 bytes; the parameters are 120
# %% OuterStep: changed
# -             velocity.mul_(self.momentum).add_(change)
# +             velocity.mul_(self.momentum).add_(change)
# +             dist.all_reduce(velocity)
# +             velocity /= dist.get_world_size()
