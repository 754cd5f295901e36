"""The last rank answers each piece with an empty message, for which the root waits before the next."""


# caught by: test_pipelined_broadcast
# mistake: no_overlap
# says: rank 3 sent an empty message to rank 0: nothing is to go there
# %% pipelined_broadcast: changed
#               dist.send(piece, dst=(rank + 1) % n)
# +         elif n > 1:
# +             dist.send(tensor[:0], dst=root)
# +         if place == 0 and n > 1:
# +             dist.recv(tensor[:0], src=(root - 1) % n)
