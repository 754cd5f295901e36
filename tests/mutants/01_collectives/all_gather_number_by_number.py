"""A message for each number of a chunk: as many bytes, a hundred times the messages."""


# caught by: test_all_gather
# mistake: too_much_sent
# says: sent 300 messages, where 3 would do
# %% all_gather: changed
# -         exchange(chunks[rank], dst, chunks[src], src)
# +         most = max(chunk.numel() for chunk in chunks)
# +         for i in range(most):
# +             exchange(chunks[rank][i : i + 1], dst, chunks[src][i : i + 1], src)
