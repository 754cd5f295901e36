"""The busiest pair of ranks, where a link is that of a rank."""
# caught by: test_count
# mistake: wrong_kind
# %% count: changed
# -             chunks["out of", transfer.src] += 1
# -             chunks["into", transfer.dst] += 1
# +             chunks[transfer.src, transfer.dst] += 1
