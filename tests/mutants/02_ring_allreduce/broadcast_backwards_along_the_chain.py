"""The chain goes from the root down: root, root - 1, and so on."""


# caught by: test_pipelined_broadcast
# mistake: reversed
# says: rank 0 sent 0 bytes to rank 1, expected 32000
# %% pipelined_broadcast: changed
# -     place = (rank - root) % n  # how far down the chain
# +     place = (root - rank) % n
#       bounds = chunk_bounds(tensor.numel(), chunks).tolist()
#       for start, stop in pairwise(bounds):
#           piece = tensor[start:stop]
#           if place > 0:
# -             dist.recv(piece, src=(rank - 1) % n)
# +             dist.recv(piece, src=(rank + 1) % n)
#           if place < n - 1:
# -             dist.send(piece, dst=(rank + 1) % n)
# +             dist.send(piece, dst=(rank - 1) % n)
