"""A while loop whose counter stays as it is: the ring goes round for ever."""
# caught by: test_ring_all_gather
# mistake: no_end
# says: came to no end: is this loop endless? · cell
# %% ring_all_gather: changed
# -     for step in range(n - 1):
# +     step = 0
# +     while step < n - 1:
