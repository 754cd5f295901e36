"""Launches a bucket with its first gradient, not its last."""
# caught by: test_Overlapped
# mistake: too_early
# %% Overlapped: changed
# -         if not bucket.missing:
# +         if len(bucket.missing) == len(bucket.parameters) - 1:
