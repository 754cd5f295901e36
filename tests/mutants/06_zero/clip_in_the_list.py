"""Puts other tensors into the list; the gradients themselves stay as they were."""
# caught by: test_clip
# mistake: copy_or_view
# says: times what it was
# %% clip: changed
# -         for shard in shards:
# -             shard *= max_norm / norm
# +         for i, shard in enumerate(shards):
# +             shards[i] = shard * (max_norm / norm)
