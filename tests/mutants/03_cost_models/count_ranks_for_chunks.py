"""An Nth of the buffer for each chunk."""
# caught by: test_count
# mistake: wrong_kind
# %% count: changed
# -         share += max(chunks.values()) / schedule.chunks
# +         share += max(chunks.values()) / schedule.world_size
