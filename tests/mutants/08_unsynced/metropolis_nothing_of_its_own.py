"""The diagonal stays 0."""


# caught by: test_metropolis
# mistake: part_missing
# says: weights[0][0] is 0, expected 0.333333
# %% metropolis: changed
# -         weights[r][r] = 1 - sum(weights[r])
