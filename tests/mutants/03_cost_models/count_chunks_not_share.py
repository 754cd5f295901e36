"""Chunks, not parts of the buffer."""
# caught by: test_count
# mistake: units
# %% count: changed
# -         share += max(chunks.values()) / schedule.chunks
# +         share += max(chunks.values())
