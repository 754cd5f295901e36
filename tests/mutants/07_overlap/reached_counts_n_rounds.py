"""N messages of N - 1."""
# caught by: test_reached
# mistake: one_off
# %% reached: changed
# -     return rounds * size / n / (rounds * (alpha + size / n * beta))
# +     return 2 * size / (rounds * (alpha + size / n * beta))
