"""8 bytes for the optimizer: Adam's moments without the parameter in 32 bits."""
# caught by: test_state_bytes
# mistake: part_missing
# %% state_bytes
def state_bytes(params, stage, n):
    parts = [2, 2, 8]
    divided = [stage >= 3, stage >= 2, stage >= 1]
    return params * sum(part / n if d else part for part, d in zip(parts, divided))
