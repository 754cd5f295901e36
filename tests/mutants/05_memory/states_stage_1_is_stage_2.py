"""Stages 1 and 2 blurred: the gradients are divided at stage 1."""
# caught by: test_model_states
# mistake: stages_mixed_up
# %% model_states
def model_states(params, optimizer="adam", precision="mixed", stage=0, n=1):
    numbers = 4 * {"sgd": 0, "momentum": 1, "adam": 2}[optimizer]
    each = {"fp32": (4, 4, numbers), "mixed": (2, 2, 4 + numbers), "mixed, fp32 gradients": (2, 6, 4 + numbers)}
    cut = [n if stage >= first else 1 for first in (3, 1, 1)]
    return tuple(params * part / by for part, by in zip(each[precision], cut, strict=True))
