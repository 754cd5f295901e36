"""A rank counts as its own neighbour."""


# caught by: test_metropolis
# mistake: one_of_a_kind
# says: weights[0][1] is 0.25, expected 0.333333; rank 0 has 2 neighbours, rank 1 has 2 neighbours
# %% metropolis: changed
# -             weights[r][s] = 1 / (1 + max(len(neighbours[r]), len(neighbours[s])))
# +             weights[r][s] = 1 / (2 + max(len(neighbours[r]), len(neighbours[s])))
