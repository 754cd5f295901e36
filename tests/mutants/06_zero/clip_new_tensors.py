"""Scales copies: the gradients stay as they were."""


# caught by: test_clip
# %% clip: changed
# -             shard *= max_norm / norm
# +             shard = shard * max_norm / norm
