"""2S however many ranks there are: right in the limit only."""
# caught by: test_ring_cost
# mistake: rule_of_thumb
# %% ring_cost
def ring_cost(n):
    return 2 * (n - 1), 2.0
