"""NumPy and torch: counts by bincount, a linear system, answers as arrays."""


# %% count
import numpy as np


def count(schedule):
    n, share = schedule.world_size, 0.0
    for r in schedule.rounds:
        busiest = max(np.bincount(r.src, minlength=n).max(), np.bincount(r.dst, minlength=n).max())
        share += busiest / schedule.chunks
    return np.array([len(schedule.rounds), share])


# %% ring_cost
def ring_cost(n):
    return torch.tensor([2 * n - 2, 2 - 2 / n], dtype=torch.float64)


# %% crossover
import numpy as np


def crossover(first, second, alpha, beta):
    # t = r α + s β x for both: [[sβ, -1], [s'β, -1]] (x, t) = (-r α, -r' α)
    if first[1] == second[1]:
        return None
    a = np.array([[first[1] * beta, -1.0], [second[1] * beta, -1.0]])
    x = (first[0] - second[0]) * alpha / (a[1, 0] - a[0, 0])
    return x if x > 0 else None


# %% best_chunks
import numpy as np


def best_chunks(n, size, alpha, beta):
    k = np.arange(1, 1_000_001, dtype=np.float64)
    return np.argmin((n - 2 + k) * (alpha + size * beta / k)) + 1


# %% bandwidths
import numpy as np


def bandwidths(line, collective, n):
    size, us = np.array(line.split())[[0, 5]].astype(float)
    algbw = size / us / 1e3
    if collective == "all_reduce":
        return algbw, 2 * (1 - 1 / n) * algbw
    return np.array([algbw, algbw if collective in {"broadcast", "reduce"} else (1 - 1 / n) * algbw])


# %% state_bytes
def state_bytes(params, stage, n):
    bytes_of = torch.tensor([12.0, 2.0, 2.0], dtype=torch.float64)
    bytes_of[:stage] /= n
    return params * bytes_of.sum()


# %% least_ranks
import numpy as np


def least_ranks(params, stage, memory):
    ranks = np.arange(1, 1_000_001)
    fits = np.broadcast_to(state_bytes_of(params, stage, ranks) <= memory, ranks.shape)
    return ranks[fits.argmax()] if fits.any() else None


def state_bytes_of(params, stage, n):
    return params * sum(b / n if stage > i else b for i, b in enumerate((12, 2, 2)))
