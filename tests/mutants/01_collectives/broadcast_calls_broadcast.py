"""Calls the broadcast that was to be written."""
# caught by: test_broadcast
# mistake: ready_made
# %% broadcast
def broadcast(tensor, root):
    dist.broadcast(tensor, src=root)
