"""Where all gradients are 0 it divides by 0."""
# caught by: test_clip
# mistake: special_case
# says: ZeroDivisionError
# %% clip: changed
# -     if norm > max_norm:
# -         for shard in shards:
# -             shard *= max_norm / norm
# +     scale = min(1.0, max_norm / norm.item())
# +     for shard in shards:
# +         shard *= scale
