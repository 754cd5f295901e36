"""Each rank clips by the norm of what it has."""


# caught by: test_clip
# mistake: not_exchanged
# says: the norm is
# %% clip: changed
# -     dist.all_reduce(squares)
