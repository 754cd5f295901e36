"""Gradients of 4 bytes in mixed precision, as DeepSpeed's estimator counts: 18 in all."""
# caught by: test_model_states
# mistake: counted_twice
# %% model_states
def model_states(params, optimizer="adam", precision="mixed", stage=0, n=1):
    numbers = 4 * {"sgd": 0, "momentum": 1, "adam": 2}[optimizer]
    parameter, gradient, kept = (4, 4, numbers) if precision == "fp32" else (2, 4, 4 + numbers)
    cut = [n if stage >= first else 1 for first in (3, 2, 1)]
    return params * parameter / cut[0], params * gradient / cut[1], params * kept / cut[2]
