"""Indices and numbers in one message, sorted by size; bits by loops; an SVD; a formula of cases."""


# %% top_k_mean
def top_k_mean(vector, k):
    n, k = dist.get_world_size(), min(k, vector.numel())
    _, places = torch.sort(vector.square(), descending=True, stable=True)
    places = places[:k]
    both = torch.cat([places.to(torch.int32), vector[places].view(torch.int32)])
    gathered = torch.empty(n * 2 * k, dtype=torch.int32)
    dist.all_gather_into_tensor(gathered, both)
    mean = torch.zeros_like(vector)
    for row in gathered.view(n, 2 * k):
        mean.index_add_(0, row[:k].long(), row[k:].clone().view(torch.float32))
    return mean / n, torch.zeros_like(vector).scatter(0, places, vector[places])


# %% majority
def pack_signs(x):
    found = []
    for start in range(0, len(x), 8):
        found.append(sum(2**i for i, each in enumerate(x[start : start + 8].tolist()) if not each < 0))
    return torch.tensor(found, dtype=torch.uint8)


def unpack_signs(packed, numel):
    return torch.tensor([1.0 if int(packed[i // 8]) >> i % 8 & 1 else -1.0 for i in range(numel)])


def majority(x):
    everyones = [torch.zeros(-(-len(x) // 8), dtype=torch.uint8) for _ in range(dist.get_world_size())]
    dist.all_gather(everyones, pack_signs(x), async_op=True).wait()
    mean = torch.stack([unpack_signs(each, len(x)) for each in everyones]).mean(0)
    mean[mean >= 0] = 1
    mean[mean < 0] = -1
    return mean


# %% PowerSGD
class PowerSGD:
    def __init__(self, q):
        self.q = q

    def mean(self, matrix):
        flat = (matrix @ self.q).reshape(-1)
        dist.all_reduce(flat)
        p = torch.linalg.svd(flat.view(len(matrix), -1), full_matrices=False).U
        q = p.T @ matrix
        dist.all_reduce(q)
        self.q = q.T / dist.get_world_size()
        return torch.einsum("mr,nr->mn", p, self.q)


# %% bytes_a_step
def bytes_a_step(method, n, rows, columns, h=1, degree=2, k=0, r=1):
    import math
    from fractions import Fraction

    if n == 1 and method != "gossip":
        return 0
    if method == "gossip":
        return degree * 4 * rows * columns
    if method in ("signs", "top-k"):
        return (n - 1) * (math.ceil(rows * columns / 8) if method == "signs" else 4 * (k + k))
    size = Fraction(rows * columns * 4) if method != "PowerSGD" else Fraction(4 * (rows * r + r * columns))
    return 2 * (n - 1) * size / n / (h if method == "local SGD" else 1)
