"""Each list of neighbours gets the rank itself, and keeps it."""


# caught by: test_metropolis
# mistake: changes_its_input
# says: metropolis changed the neighbours that it was given
# %% metropolis: changed
# -         weights[r][r] = 1 - sum(weights[r])
# +         weights[r][r] = 1 - sum(weights[r])
# +     for r in range(n):
# +         neighbours[r].append(r)
