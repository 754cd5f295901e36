"""All ranks wait for each other after each round of the tree."""


# caught by: test_tree_broadcast
# mistake: ready_made
# says: called barrier; build it from send and recv
# %% tree_broadcast: changed
#               dist.recv(tensor, src=(rank - reach) % n)
# +         dist.barrier()
