"""A rank divides by the number of its own neighbours: the weights are not symmetric."""


# caught by: test_metropolis
# mistake: one_of_a_kind
# says: weights[0][1] is 0.5, expected 0.333333; rank 0 has 1 neighbour, rank 1 has 2 neighbours
# %% metropolis: changed
# -             weights[r][s] = 1 / (1 + max(len(neighbours[r]), len(neighbours[s])))
# +             weights[r][s] = 1 / (1 + len(neighbours[r]))
