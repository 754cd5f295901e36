"""The root sends to everyone, itself included."""


# caught by: test_broadcast
# mistake: not_every_rank
# says: destination rank should not be the same
# %% broadcast: changed
# -             if other != root:
# -                 dist.send(tensor, dst=other)
# +             dist.send(tensor, dst=other)
