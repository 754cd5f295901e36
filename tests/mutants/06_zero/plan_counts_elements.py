"""The traffic in elements, not in bytes."""


# caught by: test_plan
# %% plan
def plan(stage, params, n):
    """``(parameters, gradients, states, sent)``: bytes that a rank holds of each, and that it sends in a step."""
    shard = params / n
    parameters = 4 * (shard if stage >= 3 else params)
    gradients = 4 * (shard if stage >= 2 else params)
    states = 8 * (shard if stage >= 1 else params)
    vectors = 3 if stage == 3 else 2
    return parameters, gradients, states, vectors * params * (n - 1) / n
