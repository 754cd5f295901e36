"""The gradients are counted on the device, wherever the step is done."""


# caught by: test_tier_bytes
# mistake: wrong_tier
# says: what is on the device is 4.06e+10, expected 2.06e+10 (1.97 times it)
# %% tier_bytes: changed
# -     held["device" if states == "device" else "host"] += each * shard
# +     held["device"] += each * shard
