"""Halves of the ranks, and halves of these; the all-reduce from another pair of collectives."""


# %% tree_broadcast
def tree_broadcast(tensor, root):
    rank, n = dist.get_rank(), dist.get_world_size()

    def pass_on(first, count):
        """Among ``count`` places from ``first``, whose first one has the tensor."""
        if count == 1:
            return
        half = 1 << (count - 1).bit_length() - 1
        if (rank - root) % n == first:
            dist.send(tensor, dst=(root + first + half) % n)
        elif (rank - root) % n == first + half:
            dist.recv(tensor, src=(root + first) % n)
        pass_on(first, half) if (rank - root) % n < first + half else pass_on(first + half, count - half)

    pass_on(0, n)


# %% all_reduce
def all_reduce(tensor):
    n = dist.get_world_size()
    mine = chunks_of(tensor)[dist.get_rank()]
    mine.copy_(all_to_all(tensor).view(n, mine.numel()).sum(0))
    all_gather(tensor)
