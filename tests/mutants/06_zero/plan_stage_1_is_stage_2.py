"""Shards the gradients in stage 1 already, as most code does not."""


# caught by: test_plan
# mistake: stages_mixed_up
# says: what is held of gradients is 1e+06, expected 4e+06
# %% plan: changed
# -     gradients = 4 * (shard if stage >= 2 else params)
# +     gradients = 4 * (shard if stage >= 1 else params)
