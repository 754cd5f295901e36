"""The parameters go where the states go."""
# caught by: test_tier_bytes
# mistake: wrong_tier
# says: what is on the device is 6e+08, expected 2.06e+10
# %% tier_bytes: changed
# -         held[parameters] += each * shard
# +         held[states] += each * shard
