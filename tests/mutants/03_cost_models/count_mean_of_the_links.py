"""The mean of the links in use."""
# caught by: test_count
# mistake: wrong_maximum
# %% count: changed
# -         share += max(chunks.values()) / schedule.chunks
# +         share += sum(chunks.values()) / len(chunks) / schedule.chunks
