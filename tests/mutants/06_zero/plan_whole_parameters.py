"""Counts shards of whole parameters, rounded down."""
# caught by: test_plan
# mistake: rounded_wrongly
# %% plan: changed
# -     shard = params / n
# +     shard = params // n
