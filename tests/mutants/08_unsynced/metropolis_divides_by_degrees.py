"""The larger share of the two: 1/d, made smaller by one rank; a rank without neighbours divides by 0."""


# caught by: test_metropolis
# mistake: special_case
# says: ZeroDivisionError
# %% metropolis: changed
#       for r in range(n):
# +         most = 1 / len(neighbours[r]) if n > 1 else 1.0
# @@
# -             weights[r][s] = 1 / (1 + max(len(neighbours[r]), len(neighbours[s])))
# +             weights[r][s] = 1 / (1 / min(most, 1 / len(neighbours[s])) + 1)
