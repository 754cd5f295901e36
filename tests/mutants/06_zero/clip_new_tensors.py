"""Scales copies: the gradients stay as they were."""


# caught by: test_clip
# mistake: copy_or_view
# %% clip: changed
# -             shard *= max_norm / norm
# +             shard = shard * max_norm / norm
