"""A message for each number of the chunk."""


# caught by: test_gather
# mistake: too_much_sent
# says: messages to rank 0, where 1 would do
# %% gather: changed
# -         dist.send(chunks[rank], dst=root)
# +         for number in chunks[rank].split(1):
# +             dist.send(number, dst=root)
# @@
# -             dist.recv(chunk, src=other)
# +             for number in chunk.split(1):
# +                 dist.recv(number, src=other)
