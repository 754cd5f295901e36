"""Rounds to whole bytes."""
# caught by: test_crossover
# mistake: rounded_wrongly
# %% crossover: changed
# -     return more_rounds * alpha / (less_share * beta) or None  # where alpha is 0 they meet at 0 bytes only
# +     return round(more_rounds * alpha / (less_share * beta)) or None  # where alpha is 0 they meet at 0 bytes only
