"""A third for each, as on a ring."""


# caught by: test_metropolis
# mistake: some_ranks_only
# says: weights[0][1] is 0.333333, expected 0.166667
# %% metropolis: changed
# -             weights[r][s] = 1 / (1 + max(len(neighbours[r]), len(neighbours[s])))
# +             weights[r][s] = 1 / 3
