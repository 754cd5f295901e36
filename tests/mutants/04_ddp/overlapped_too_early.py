"""Launches a bucket with its first gradient, not its last."""
# caught by: test_Overlapped
# %% Overlapped: changed
# -         if not bucket.missing:
# +         if len(bucket.missing) == len(bucket.parameters) - 1:
