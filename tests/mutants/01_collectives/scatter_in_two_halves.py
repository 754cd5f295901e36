"""The root sends each chunk in two messages."""


# caught by: test_scatter
# mistake: too_much_sent
# says: sent 2 messages to rank 1, where 1 would do
# %% scatter: changed
# -         dist.recv(chunks[rank], src=root)
# +         for half in chunks[rank].tensor_split(2):
# +             dist.recv(half, src=root)
# @@
# -             dist.send(chunk, dst=other)
# +             for half in chunk.tensor_split(2):
# +                 dist.send(half, dst=other)
