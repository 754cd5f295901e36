"""Rounds the share to three digits."""
# caught by: test_ring_cost
# mistake: rounded_wrongly
# %% ring_cost: changed
# -     return 2 * (n - 1), 2 * (n - 1) / n
# +     return 2 * (n - 1), round(2 * (n - 1) / n, 3)
