"""Rounds the parameters of a rank up."""
# caught by: test_state_bytes
# mistake: rounded_wrongly
# says: the memory in bytes is
# %% state_bytes: changed
# -     optimizer = 12 / n if stage >= 1 else 12
# -     gradients = 2 / n if stage >= 2 else 2
# -     parameters = 2 / n if stage >= 3 else 2
# -     return params * (parameters + gradients + optimizer)
# +     shard = -(-params // n)
# +     optimizer = 12 * (shard if stage >= 1 else params)
# +     gradients = 2 * (shard if stage >= 2 else params)
# +     parameters = 2 * (shard if stage >= 3 else params)
# +     return parameters + gradients + optimizer
