"""A chain that adds up on the way: the root's sum is right, the others hold parts of it."""
# caught by: test_reduce
# mistake: changes_its_input
# %% reduce
def reduce(tensor, root):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - root) % n
    if place < n - 1:
        landing = torch.empty_like(tensor)
        dist.recv(landing, src=(rank + 1) % n)
        tensor += landing
    if place > 0:
        dist.send(tensor, dst=(rank - 1) % n)
