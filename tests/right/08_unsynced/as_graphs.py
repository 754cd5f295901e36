"""Weights as the Laplacian of a graph; a gap by power iteration; rows of tensors; a memory as one difference."""


# %% metropolis
def metropolis(neighbours):
    n = len(neighbours)
    degree = torch.tensor([float(len(near)) for near in neighbours], dtype=torch.float64)
    beside = torch.zeros(n, n, dtype=torch.float64)
    for r, near in enumerate(neighbours):
        beside[r, list(near)] = 1
    part = beside / (1 + torch.maximum(degree[:, None], degree[None, :]))
    return [[*row] for row in torch.eye(n, dtype=torch.float64) - torch.diag(part.sum(1)) + part]


def gap(weights):
    import numpy as np

    values = np.linalg.eigvalsh(np.array(weights, dtype=float))
    rest = np.delete(values, np.argmin(np.abs(values - 1)))
    return 1 - np.max(np.abs(rest)) if len(rest) else 1


# %% gossip
def gossip(x, weights):
    me, n, theirs = dist.get_rank(), dist.get_world_size(), {}
    ops = []
    for other in range(n):
        if other != me and weights[other][me] != 0:
            ops.append(dist.P2POp(dist.isend, x, other))
    for other in range(n):
        if other != me and weights[me][other] != 0:
            theirs[other] = torch.empty(x.shape, dtype=x.dtype)
            ops.append(dist.P2POp(dist.irecv, theirs[other], other))
    works = dist.batch_isend_irecv(ops) if len(ops) > 0 else []
    for work in reversed(works):
        work.wait()
    theirs[me] = x
    return sum(theirs[other] * weights[me][other] for other in sorted(theirs))


# %% top_k_mean
def top_k_mean(vector, k):
    k, n = min(k, len(vector)), dist.get_world_size()
    order = sorted(range(len(vector)), key=lambda i: -abs(vector[i].item()))[:k]
    mine = torch.zeros(len(vector))
    for i in order:
        mine[i] = vector[i]
    gathered = [[torch.zeros(k, dtype=kind) for _ in range(n)] for kind in (torch.float32, torch.int32)]
    dist.all_gather(gathered[0], vector[order].contiguous())
    dist.all_gather(gathered[1], torch.tensor(order, dtype=torch.int32))
    mean = torch.zeros(len(vector))
    for values, places in zip(*gathered):
        for value, place in zip(values.tolist(), places.tolist()):
            mean[place] += value
    return [mean.div_(n), mine]
