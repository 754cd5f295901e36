"""It leaves out the 1: on a ring nothing is left for the rank itself."""


# caught by: test_metropolis
# mistake: part_missing
# says: weights[0][1] is 0.5, expected 0.333333; rank 0 has 2 neighbours, rank 1 has 2 neighbours
# %% metropolis: changed
# -             weights[r][s] = 1 / (1 + max(len(neighbours[r]), len(neighbours[s])))
# +             weights[r][s] = 1 / max(len(neighbours[r]), len(neighbours[s]))
