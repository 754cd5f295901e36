"""None only where shares are equal."""
# caught by: test_crossover
# mistake: special_case
# %% crossover: changed
# -     if more_rounds * less_share <= 0:
# +     if less_share == 0:
