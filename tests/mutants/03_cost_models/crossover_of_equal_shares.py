"""Divides by the difference of the shares, also where there is none."""
# caught by: test_crossover
# mistake: special_case
# says: raised ZeroDivisionError
# %% crossover: changed
# -     if more_rounds * less_share <= 0:
# +     if more_rounds * less_share < 0:
