"""Waits for what it sends before it receives anything."""


# caught by: test_gossip
# mistake: all_send_first
# says: a cycle: rank 0 waits to send to rank 1
# %% gossip: changed
# -     together += [dist.P2POp(dist.irecv, received[s], s) for s in received]
# -     for work in dist.batch_isend_irecv(together) if together else []:
# -         work.wait()
# +     for work in dist.batch_isend_irecv(together) if together else []:
# +         work.wait()
# +     together = [dist.P2POp(dist.irecv, received[s], s) for s in received]
# +     for work in dist.batch_isend_irecv(together) if together else []:
# +         work.wait()
