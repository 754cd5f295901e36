"""NumPy and torch where others loop."""


# %% largest_degree
import numpy as np


def largest_degree(flops, bandwidth, width, element):
    ranks = np.arange(1, 1_000_001)
    hides = element * (ranks - 1) / bandwidth <= 2 * width / flops
    return ranks[hides][-1]


# %% all_reduces
import numpy as np


def all_reduces(backwards, sizes, cap, alpha, beta):
    done = np.cumsum(backwards[::-1])
    rows, start, free = [], 0, 0.0
    held = np.array(sizes[::-1])
    for i in range(len(held)):
        total = held[start : i + 1].sum()
        if total >= cap or i == len(held) - 1:
            begin = np.maximum(done[i], free)
            free = begin + alpha + beta * total
            rows.append([begin, free])
            start = i + 1
    return np.array(rows)


# %% exposed
import numpy as np


def exposed(operations):
    times = np.unique([t for op in operations for t in (op.start, op.end)])
    middles, lengths = (times[:-1] + times[1:]) / 2, np.diff(times)

    def busy(stream):
        covered = np.zeros(len(middles), dtype=bool)
        for op in operations:
            if op.stream == stream:
                covered |= (op.start < middles) & (middles < op.end)
        return covered

    return lengths[busy("communication") & ~busy("compute")].sum()


# %% best_cap
import numpy as np


def best_cap(backwards, sizes, caps, alpha, beta):
    ends = np.array([np.array(all_reduces(backwards, sizes, cap, alpha, beta)).max() for cap in caps])
    return caps[int(ends.argmin())]


# %% forward_pass
def forward_pass(gathers, forwards, ahead):
    ready, done = torch.zeros(len(gathers), dtype=torch.float64), torch.zeros(len(gathers) + 1, dtype=torch.float64)
    for i, (g, f) in enumerate(zip(gathers, forwards)):
        before = ready[i - 1] if i else torch.zeros((), dtype=torch.float64)
        ready[i] = torch.maximum(before, done[max(i - ahead, 0)]) + g
        done[i + 1] = torch.maximum(ready[i], done[i]) + f
    return done.max()


# %% least_micro_batches
import numpy as np


def least_micro_batches(stages, share, pieces):
    m = np.arange(1, 1_000_001)
    idle = (stages - 1) / (pieces * m + stages - 1)
    return int(m[idle <= share].min())


# %% kept
import numpy as np


def kept(i, stages, micro_batches):
    order = [1] * min(stages - i, micro_batches)
    for _ in range(micro_batches - len(order)):
        order += [-1, 1]
    return np.cumsum(order).max()


# %% straggler
import numpy as np


def straggler(enters, worth):
    times = np.array(enters, dtype=float)
    ordered = np.sort(times, axis=1)
    late = times.argmax(axis=1)
    charge = ordered[:, -1] - np.median(ordered[:, :-1], axis=1)
    each = np.bincount(late, weights=charge, minlength=times.shape[1])
    rank = each.argmax()
    if each[rank] >= 0.6 * each.sum() and each[rank] / len(times) >= worth:
        return np.array([rank, each[rank]])


# %% backward_pass
def backward_pass(layers, cap):
    n, numels, pending, flats, begun = dist.get_world_size(), {}, [], [], 0
    bucket = torch.empty(0)
    for i in range(len(layers) - 1, -1, -1):
        g = layers[i].backward()
        numels[i] = g.numel()
        bucket = torch.hstack((g, bucket))  # in the order of the layers
        if bucket.element_size() * bucket.numel() >= cap or i == 0:
            pending += [dist.all_reduce(bucket, op=dist.ReduceOp.SUM, async_op=True)]
            flats.insert(0, bucket)
            bucket = torch.empty(0)
    for work in reversed(pending):
        work.wait()
    return list(torch.split(torch.cat(flats) / n, [numels[i] for i in range(len(layers))]))
