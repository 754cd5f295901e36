"""The two halves in the wrong order."""


# caught by: test_all_reduce
# mistake: reversed
# says: the tensor is wrong
# %% all_reduce: changed
# - def all_reduce(tensor):
# -     """Replace ``tensor`` on every rank by the sum over ranks."""
# -     reduce_scatter(tensor)
# -     all_gather(tensor)
# + def all_reduce(tensor):
# +     """Replace ``tensor`` on every rank by the sum over ranks."""
# +     all_gather(tensor)
# +     reduce_scatter(tensor)
