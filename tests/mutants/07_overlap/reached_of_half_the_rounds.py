"""The bytes of the reduce-scatter over the time of both."""
# caught by: test_reached
# mistake: part_missing
# %% reached: changed
# -     return rounds * size / n / (rounds * (alpha + size / n * beta))
# +     return rounds / 2 * size / n / (rounds * (alpha + size / n * beta))
