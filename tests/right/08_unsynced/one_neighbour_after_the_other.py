"""Rounds of one neighbour to the right and one to the left; Gram and Schmidt; NumPy's bits; tuples for lists."""


# %% metropolis
def metropolis(neighbours):
    degrees, n = [len(near) for near in neighbours], len(neighbours)
    w = torch.zeros(n, n, dtype=torch.float64)
    for r, near in enumerate(neighbours):
        for s in near:
            w[r, s] = 1 / (1 + max(degrees[r], degrees[s]))
    return tuple(tuple(row) for row in (w + torch.diag(1 - w.sum(1))).tolist())


def gap(weights):
    w = torch.tensor(weights, dtype=torch.float64)
    return 1 - torch.linalg.svdvals(w - 1 / len(w))[0]


# %% gossip
def gossip(x, weights):
    r, n = dist.get_rank(), dist.get_world_size()
    mixed = x * weights[r][r]
    for step in range(1, n):
        right, left = (r + step) % n, (r - step) % n
        together, theirs = [], torch.zeros_like(x)
        if weights[right][r]:
            together.append(dist.P2POp(dist.isend, x.clone(), right))
        if weights[r][left]:
            together.append(dist.P2POp(dist.irecv, theirs, left))
        if together:
            for work in dist.batch_isend_irecv(together):
                work.wait()
        mixed = mixed + weights[r][left] * theirs
    return mixed


# %% ErrorFeedback
class ErrorFeedback:
    def __init__(self, compress):
        self.compress, self.left = compress, None

    def mean(self, gradient):
        if self.left is None:
            self.left = torch.zeros_like(gradient)
        self.left.add_(gradient)
        mean, mine = self.compress(self.left.clone())
        self.left -= mine
        return mean


# %% majority
def pack_signs(x):
    import numpy as np

    return torch.from_numpy(np.packbits((x >= 0).cpu().numpy(), bitorder="little"))


def unpack_signs(packed, numel):
    bits = torch.stack([packed & 2**i for i in range(8)], 1).flatten()[:numel]
    return torch.where(bits > 0, torch.ones(numel), -torch.ones(numel))


def majority(x):
    packed, n = pack_signs(x), dist.get_world_size()
    everyones = torch.empty(n * len(packed), dtype=torch.uint8)
    dist.all_gather_into_tensor(everyones, packed)
    above = sum(unpack_signs(each, len(x)) > 0 for each in everyones.view(n, -1))
    return (2 * (2 * above >= n) - 1).float()


# %% PowerSGD
class PowerSGD:
    def __init__(self, q):
        self.q = q.clone()

    def mean(self, matrix):
        n = dist.get_world_size()
        p = matrix @ self.q / n
        dist.all_reduce(p)
        columns = []
        for column in p.T:
            for other in 2 * columns:
                column = column - (other @ column) * other
            columns.append(column / column.norm().clamp(min=1e-30))
        p = torch.stack(columns, 1)
        q = (matrix / n).T @ p
        dist.all_reduce(q)
        self.q = q if q.any() else self.q  # zeros would stay zeros
        return p @ q.T
