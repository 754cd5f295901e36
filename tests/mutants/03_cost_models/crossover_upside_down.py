"""Divides beta by alpha."""
# caught by: test_crossover
# mistake: reversed
# %% crossover: changed
# -     return more_rounds * alpha / (less_share * beta) or None  # where alpha is 0 they meet at 0 bytes only
# +     return more_rounds * beta / (less_share * alpha) if alpha else None
