"""The gradients are counted in the file with the states."""


# caught by: test_tier_bytes
# mistake: wrong_tier
# says: what is on the host is 667.333, expected 1334.67 (0.5 times it)
# %% tier_bytes: changed
# -     held["device" if states == "device" else "host"] += each * shard
# +     held[states] += each * shard
