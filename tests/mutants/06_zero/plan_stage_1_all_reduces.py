"""Stage 1 sends an all-reduce of the gradients and an all-gather of the parameters."""


# caught by: test_plan
# %% plan
def plan(stage, params, n):
    """``(parameters, gradients, states, sent)``: bytes that a rank holds of each, and that it sends in a step."""
    shard = params / n
    parameters = 4 * (shard if stage >= 3 else params)
    gradients = 4 * (shard if stage >= 2 else params)
    states = 8 * (shard if stage >= 1 else params)
    vectors = 2 if stage in (0, 2) else 3
    return parameters, gradients, states, 4 * vectors * params * (n - 1) / n
