"""The root sends to each: N-1 rounds passed off as a tree."""
# caught by: test_tree_broadcast
# mistake: other_algorithm
# %% tree_broadcast
def tree_broadcast(tensor, root):
    broadcast(tensor, root)
