"""Stage 3 sends 3 Psi / N: a wrong form that is in print."""


# caught by: test_plan
# mistake: one_of_a_kind
# %% plan: changed
# -     return parameters, gradients, states, 4 * vectors * params * (n - 1) / n
# +     sent = 12 * params / n if stage == 3 else 8 * params * (n - 1) / n
# +     return parameters, gradients, states, sent
