"""Each piece is answered with an empty message, and the next one waits for the answer."""


# caught by: test_pipelined_broadcast
# mistake: too_much_sent
# says: rank 1 sent an empty message to rank 0
# %% pipelined_broadcast: changed
#               dist.recv(piece, src=(rank - 1) % n)
# +             dist.send(tensor[:0], dst=(rank - 1) % n)
#           if place < n - 1:
#               dist.send(piece, dst=(rank + 1) % n)
# +             dist.recv(tensor[:0], src=(rank + 1) % n)
