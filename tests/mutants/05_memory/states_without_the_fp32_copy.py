"""Adam's two moments, and no parameter in fp32: 2 + 2 + 8."""
# caught by: test_model_states
# mistake: part_missing
# %% model_states
def model_states(params, optimizer="adam", precision="mixed", stage=0, n=1):
    numbers = 4 * {"sgd": 0, "momentum": 1, "adam": 2}[optimizer]
    parameter, gradient = (4, 4) if precision == "fp32" else (2, 2 + 4 * ("gradients" in precision))
    cut = [n if stage >= first else 1 for first in (3, 2, 1)]
    return params * parameter / cut[0], params * gradient / cut[1], params * numbers / cut[2]
