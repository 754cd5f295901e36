"""Where all gradients are 0 it makes nan of them."""
# caught by: test_clip
# mistake: special_case
# says: nan times what it was
# %% clip: changed
# -     if norm > max_norm:
# -         for shard in shards:
# -             shard *= max_norm / norm
# +     scale = min(norm.item(), max_norm) / norm
# +     for shard in shards:
# +         shard *= scale
