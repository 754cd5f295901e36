"""ZeRO-3 and tensor parallelism in half a node, where that fits; one list for all steps of the clock."""


# %% plan
def plan(nodes):
    if nodes == 4:
        return dict(data=1, tensor=8, pipeline=4, stage=0)
    return dict(data=2 * nodes, tensor=4, pipeline=1, stage=3, recomputation="none")


# %% backward_pass
def backward_pass(layers, cap):
    """Buckets are decided beforehand, in memory of their own; a single rank sends nothing."""
    n, result, works, alone = dist.get_world_size(), [], [], dist.get_world_size() == 1
    pending = []
    for layer in layers[::-1]:
        pending.insert(0, layer.backward())
        if 4 * sum(map(len, pending)) >= cap or layer is layers[0]:
            flat = torch.cat(pending)
            if not alone:
                works.append(dist.all_reduce(flat, async_op=True))
            result = [*flat.split([len(g) for g in pending]), *result]
            pending = []
    [work.wait() for work in works]
    for gradient in result:
        gradient /= n
    return result


# %% reached
def reached(size, n, alpha, beta):
    seconds = 2 * (n - 1) * (alpha + beta * size / n)
    return 2 * (n - 1) / n * size / seconds


# %% best_cap
def best_cap(backwards, sizes, caps, alpha, beta):
    """Without the clock of section 4."""
    best = None
    for cap in caps:
        now, free, held = 0.0, 0.0, 0
        for i in range(len(sizes))[::-1]:
            now += backwards[i]
            held += sizes[i]
            if held >= cap or not i:
                free, held = max(free, now) + alpha + beta * held, 0
        if best is None or free < best[0]:
            best = free, cap
    return best[1]
