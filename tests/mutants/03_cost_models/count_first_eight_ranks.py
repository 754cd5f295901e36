"""Looks at the first eight ranks."""
# caught by: test_count
# mistake: some_ranks_only
# %% count: changed
# -         share += max(chunks.values()) / schedule.chunks
# +         share += max(chunks[way, rank] for way in ('out of', 'into') for rank in range(8)) / schedule.chunks
