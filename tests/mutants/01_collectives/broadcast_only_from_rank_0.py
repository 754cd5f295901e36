"""Takes rank 0 for the root, whoever that is."""
# caught by: test_broadcast
# mistake: rank_0_for_root
# %% broadcast
def broadcast(tensor, root):
    if dist.get_rank() == 0:
        for other in range(1, dist.get_world_size()):
            dist.send(tensor, dst=other)
    else:
        dist.recv(tensor, src=0)
