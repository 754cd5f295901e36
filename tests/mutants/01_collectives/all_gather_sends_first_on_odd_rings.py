"""On an odd number of ranks every rank sends first and then receives: small messages get through, large ones do not."""
# caught by: test_all_gather
# mistake: all_send_first
# %% all_gather: changed
# -         exchange(chunks[rank], dst, chunks[src], src)
# +         if n % 2:
# +             dist.send(chunks[rank], dst)
# +             dist.recv(chunks[src], src)
# +         else:
# +             exchange(chunks[rank], dst, chunks[src], src)
