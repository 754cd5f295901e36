"""Each rank sends an empty message first, to say that its chunk comes."""


# caught by: test_gather
# mistake: too_much_sent
# says: sent 2 messages to rank 0, where 1 would do
# %% gather: changed
#       if rank != root:
# +         dist.send(tensor[:0], dst=root)
# @@
#           if other != root:
# +             dist.recv(tensor[:0], src=other)
