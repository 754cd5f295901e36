"""A vector that is padded until N divides it: a rank may send an element more in each round."""


# %% ring_all_reduce
def ring_all_reduce(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    size = -(-tensor.numel() // n)
    padded = torch.cat([tensor, tensor.new_zeros(size * n - tensor.numel())])
    rows = padded.view(n, size)
    for s in range(2 * (n - 1)):
        i, j = (rank - s) % n, (rank - s - 1) % n
        land = torch.empty_like(rows[j])
        there = dist.P2POp(dist.isend, rows[i], (rank + 1) % n)
        for work in dist.batch_isend_irecv([there, dist.P2POp(dist.irecv, land, (rank - 1) % n)]):
            work.wait()
        rows[j] = rows[j] + land if s < n - 1 else land
    tensor.copy_(padded[: tensor.numel()])
