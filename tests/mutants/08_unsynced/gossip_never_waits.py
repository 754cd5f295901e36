"""Uses what may not have come yet."""


# caught by: test_gossip
# mistake: never_waits
# says: never called wait() on its
# %% gossip: changed
# -     for work in dist.batch_isend_irecv(together) if together else []:
# -         work.wait()
# +     if together:
# +         dist.batch_isend_irecv(together)
