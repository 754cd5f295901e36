"""The bytes of a shard are rounded down."""
# caught by: test_tier_bytes
# mistake: rounded_wrongly
# says: what is on the host is 1332, expected 1334.67
# %% tier_bytes: changed
# -     shard = params / n
# +     shard = params // n
