"""Sends the tensor whole, whatever ``chunks`` says."""
# caught by: test_pipelined_broadcast
# mistake: other_algorithm
# %% pipelined_broadcast
def pipelined_broadcast(tensor, root, chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - root) % n
    if place > 0:
        dist.recv(tensor, src=(rank - 1) % n)
    if place < n - 1:
        dist.send(tensor, dst=(rank + 1) % n)
