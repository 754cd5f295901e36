"""Exact numbers, since the text says not to round."""


# %% model_states
def model_states(params, optimizer="adam", precision="mixed", stage=0, n=1):
    from fractions import Fraction

    kept = 4 * ("sgd", "momentum", "adam").index(optimizer) + (0 if precision == "fp32" else 4)
    parameter = 4 if precision == "fp32" else 2
    gradient = parameter + (4 if "gradients" in precision else 0)
    sharded = ((parameter, 3), (gradient, 2), (kept, 1))
    return tuple(Fraction(params * size, n if stage >= first else 1) for size, first in sharded)
