"""18 bytes a parameter, as DeepSpeed's estimator counts, not the paper."""
# caught by: test_state_bytes
# mistake: counted_twice
# %% state_bytes
def state_bytes(params, stage, n):
    parts = [2, 4, 12]
    divided = [stage >= 3, stage >= 2, stage >= 1]
    return params * sum(part / n if d else part for part, d in zip(parts, divided))
