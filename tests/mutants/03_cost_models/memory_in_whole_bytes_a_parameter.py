"""Whole bytes for each parameter: 12 // N."""
# caught by: test_state_bytes
# mistake: rounded_wrongly
# %% state_bytes
def state_bytes(params, stage, n):
    optimizer = max(12 // n, 12 / n if n > 12 else 0) if stage >= 1 else 12
    gradients = 2 / n if stage >= 2 else 2
    parameters = 2 / n if stage >= 3 else 2
    return params * (parameters + gradients + optimizer)
