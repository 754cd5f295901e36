"""One rank after another sends, and a barrier says whose turn it is: nothing travels at the same time."""


# caught by: test_all_gather
# mistake: ready_made
# says: called barrier; build it from send and recv
# %% all_gather: changed
# -     for k in range(1, n):
# -         dst, src = (rank + k) % n, (rank - k) % n
# -         exchange(chunks[rank], dst, chunks[src], src)
# +     for sender in range(n):
# +         for k in range(1, n):
# +             if rank == sender:
# +                 dist.send(chunks[rank], dst=(rank + k) % n)
# +             elif rank == (sender + k) % n:
# +                 dist.recv(chunks[sender], src=sender)
# +         dist.barrier()
