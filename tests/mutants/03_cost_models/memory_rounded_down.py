"""Divides by // and loses parts of a byte."""
# caught by: test_state_bytes
# mistake: rounded_wrongly
# says: the memory in bytes is
# %% state_bytes: changed
# -     optimizer = 12 / n if stage >= 1 else 12
# -     gradients = 2 / n if stage >= 2 else 2
# -     parameters = 2 / n if stage >= 3 else 2
# -     return params * (parameters + gradients + optimizer)
# +     optimizer = 12 * params // n if stage >= 1 else 12 * params
# +     gradients = 2 * params // n if stage >= 2 else 2 * params
# +     parameters = 2 * params // n if stage >= 3 else 2 * params
# +     return parameters + gradients + optimizer
