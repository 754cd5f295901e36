"""1 over one more than both degrees together."""


# caught by: test_metropolis
# mistake: rule_of_thumb
# says: weights[0][1] is 0.2, expected 0.333333
# %% metropolis: changed
# -             weights[r][s] = 1 / (1 + max(len(neighbours[r]), len(neighbours[s])))
# +             weights[r][s] = 1 / (1 + len(neighbours[r]) + len(neighbours[s]))
