"""Messages of the whole buffer."""
# caught by: test_reached
# mistake: part_missing
# %% reached: changed
# -     return rounds * size / n / (rounds * (alpha + size / n * beta))
# +     return rounds * size / n / (rounds * (alpha + size * beta))
