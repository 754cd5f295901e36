"""Two tiers only: what belongs into the file is on the host."""
# caught by: test_tier_bytes
# mistake: wrong_tier
# says: what is on the host is
# %% tier_bytes: changed
# -     held[states] += 12 * shard
# +     held["host" if states == "file" else states] += 12 * shard
