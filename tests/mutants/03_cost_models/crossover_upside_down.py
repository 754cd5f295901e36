"""Divides beta by alpha."""
# caught by: test_crossover
# mistake: reversed
# %% crossover: changed
# -     return more_rounds * alpha / (less_share * beta)
# +     return more_rounds * beta / (less_share * alpha)
