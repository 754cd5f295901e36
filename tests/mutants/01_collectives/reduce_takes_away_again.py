"""A chain: each rank adds what came to its tensor, hands it on and takes it away again, where sums are rounded not without a trace."""
# caught by: test_reduce
# mistake: changes_its_input
# says: the tensor is wrong in
# %% reduce
def reduce(tensor, root):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - root) % n
    landing = torch.zeros_like(tensor)
    if n == 1:
        return
    if place > 1 or place == 0:
        dist.recv(landing, src=(rank - 1) % n)
        tensor += landing
    if place:
        dist.send(tensor, dst=(rank + 1) % n)
        tensor -= landing
