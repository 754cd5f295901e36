"""The traffic in elements, not in bytes."""


# caught by: test_plan
# mistake: units
# %% plan: changed
# -     return parameters, gradients, states, 4 * vectors * params * (n - 1) / n
# +     return parameters, gradients, states, vectors * params * (n - 1) / n
