"""Every rank has everything."""


# caught by: test_tier_bytes
# mistake: stages_mixed_up
# says: what is on the device is 1.606e+11, expected 2.06e+10 (7.8 times it)
# %% tier_bytes: changed
# -     shard = params / n
# +     shard = params
