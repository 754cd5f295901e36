"""In fp32 the parameter beside its master, in the same memory."""


# caught by: test_tier_bytes
# mistake: counted_twice
# says: what is on the host is 10000, expected 8000 (1.25 times it)
# %% tier_bytes: changed
# -     if precision == "mixed" or parameters != states:
# -         held[parameters] += each * shard
# +     held[parameters] += each * shard
