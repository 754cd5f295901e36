"""Counts places to the left of the root and sends to the right."""


# caught by: test_tree_broadcast
# mistake: reversed
# says: a cycle
# %% tree_broadcast: changed
# -     place = (rank - root) % n
# +     place = (root - rank) % n
