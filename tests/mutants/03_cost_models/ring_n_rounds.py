"""N rounds each."""
# caught by: test_ring_cost
# mistake: one_off
# %% ring_cost: changed
# -     return 2 * (n - 1), 2 * (n - 1) / n
# +     return 2 * n - 1, 2 * (n - 1) / n
