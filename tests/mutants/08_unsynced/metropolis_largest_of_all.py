"""The largest degree of the graph for every edge."""


# caught by: test_metropolis
# mistake: one_of_a_kind
# says: weights[1][2] is 0.166667, expected 0.25
# %% metropolis: changed
# -             weights[r][s] = 1 / (1 + max(len(neighbours[r]), len(neighbours[s])))
# +             weights[r][s] = 1 / (1 + max(map(len, neighbours)))
