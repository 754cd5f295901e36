"""A batch for each neighbour, one after the other."""


# caught by: test_gossip
# mistake: all_send_first
# says: a cycle
# %% gossip: changed
# -     for work in dist.batch_isend_irecv(together) if together else []:
# -         work.wait()
# +     for each in together:
# +         for work in dist.batch_isend_irecv([each]):
# +             work.wait()
