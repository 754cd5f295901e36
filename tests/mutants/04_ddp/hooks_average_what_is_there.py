"""Averages all gradients that there are in each hook's turn: those of layers before are averaged again and again."""


# caught by: test_average_in_hooks
# mistake: too_much_sent
# says: called all_reduce on 12 bytes 16 times, expected 2
# %% average_in_hooks: changed
# -         dist.all_reduce(parameter.grad)
# -         parameter.grad /= dist.get_world_size()
# +         for p in module.parameters():
# +             if p.grad is not None:
# +                 dist.all_reduce(p.grad)
# +                 p.grad /= dist.get_world_size()
