"""Two neighbours, whatever the graph is."""


# caught by: test_bytes_a_step
# mistake: other_algorithms_cost
# says: the number of bytes is 504, expected 756
# %% bytes_a_step: changed
# -         return degree * whole
# +         return 2 * whole
