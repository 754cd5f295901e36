"""Stage 2 that is stage 1: the gradients stay whole."""
# caught by: test_state_bytes
# mistake: stages_mixed_up
# %% state_bytes
def state_bytes(params, stage, n):
    parts = [2, 2, 12]
    divided = [stage >= 3, stage >= 3, stage >= 1]
    return params * sum(part / n if d else part for part, d in zip(parts, divided))
