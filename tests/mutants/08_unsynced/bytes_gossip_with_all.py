"""Gossip with everyone."""


# caught by: test_bytes_a_step
# mistake: other_algorithms_cost
# says: the number of bytes is 1764, expected 504 (3.5 times it)
# %% bytes_a_step: changed
# -         return degree * whole
# +         return (n - 1) * whole
