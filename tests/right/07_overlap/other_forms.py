"""Other ways, and answers in other forms: tensors, lists, whole numbers as floats."""


# %% least_tokens
def least_tokens(flops, bandwidth, n, element):
    return torch.tensor([element / 2 * flops / bandwidth * (1 - 1 / n)], dtype=torch.float64)


# %% reached
def reached(size, n, alpha, beta):
    message = size / n
    return message / (alpha + beta * message)


# %% largest_degree
def largest_degree(flops, bandwidth, width, element):
    return 1 + 2 * width * bandwidth // (element * flops)


# %% all_reduces
def all_reduces(backwards, sizes, cap, alpha, beta):
    found, bytes, time, free = [], 0, 0.0, 0.0
    for seconds, size in zip(backwards[::-1], sizes[::-1]):
        time, bytes = time + seconds, bytes + size
        if bytes >= cap:
            free = max(time, free) + alpha + beta * bytes
            found, bytes = [*found, [free - alpha - beta * bytes, free]], 0
    if bytes:
        free = max(time, free) + alpha + beta * bytes
        found += [[free - alpha - beta * bytes, free]]
    return torch.tensor(found, dtype=torch.float64)


# %% exposed
def exposed(operations):
    events = sorted((t, op.stream, d) for op in operations for t, d in ((op.start, 1), (op.end, -1)))
    running, before, seconds = {"compute": 0, "communication": 0}, 0, 0
    for time, stream, change in events:
        if running["communication"] and not running["compute"]:
            seconds += time - before
        running[stream] += change
        before = time
    return seconds


# %% best_cap
def best_cap(backwards, sizes, caps, alpha, beta):
    ends = torch.tensor([all_reduces(backwards, sizes, cap, alpha, beta)[-1][1] for cap in caps])
    return float(caps[ends.argmin()])


# %% forward_pass
def forward_pass(gathers, forwards, ahead):
    there, done = [], [0.0] * (ahead + 1)
    for gather, forward in zip(gathers, forwards):
        there.append(max(there[-1] if there else 0.0, done[-ahead - 1]) + gather)
        done.append(max(there[-1], done[-1]) + forward)
    return torch.tensor(done[-1], dtype=torch.float64)


# %% least_micro_batches
def least_micro_batches(stages, share, pieces):
    from fractions import Fraction
    share = Fraction(share).limit_denominator(10**6)
    return float(max(1, math.ceil((stages - 1) * (1 - share) / (share * pieces))))


# %% kept
def kept(i, stages, micro_batches):
    return torch.tensor([stages - i, micro_batches]).min()


# %% straggler
def straggler(enters, worth):
    charges = {rank: 0.0 for rank in range(len(enters[0]))}
    for times in enters:
        *others, (latest, rank) = sorted((time, rank) for rank, time in enumerate(times))
        half, odd = divmod(len(others), 2)
        charges[rank] += latest - (others[half][0] if odd else (others[half - 1][0] + others[half][0]) / 2)
    rank = max(charges, key=charges.get)
    if charges[rank] / len(enters) >= worth and charges[rank] >= 0.6 * sum(charges.values()):
        return [rank, charges[rank]]


# %% backward_pass
def backward_pass(layers, cap):
    n, found, works, open_bytes = dist.get_world_size(), {}, [], 0
    open_layers = []
    for i, layer in reversed(list(enumerate(layers))):
        found[i] = layer.backward() / n
        open_layers.insert(0, i)
        open_bytes += found[i].nbytes
        if open_bytes >= cap or not i:
            flat = torch.empty(open_bytes // 4)
            parts = flat.split([found[k].numel() for k in open_layers])
            for k, part in zip(open_layers, parts):
                part.copy_(found[k])
                found[k] = part
            works.append(dist.all_reduce(flat, async_op=True))
            open_layers, open_bytes = [], 0
    for work in works:
        work.wait()
    return tuple(found[i] for i in range(len(layers)))


# %% plan
def plan(nodes):
    return {"data": nodes / 4, "tensor": 8, "pipeline": 4}
