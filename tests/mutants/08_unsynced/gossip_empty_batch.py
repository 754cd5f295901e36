"""A rank without neighbours hands over an empty list."""


# caught by: test_gossip
# mistake: special_case
# says: raised IndexError: list index out of range
# %% gossip: changed
# -     for work in dist.batch_isend_irecv(together) if together else []:
# +     for work in dist.batch_isend_irecv(together):
