"""Sends nothing where nobody is there; copies before it sums; the last pieces first."""


# %% report
def report(losses):
    alone = dist.get_world_size() == 1

    def mean(value):
        return value if alone else mean_over_ranks(value)

    last = None
    for i in range(losses.numel()):
        last = mean(losses[i : i + 1])
    distance = mean((losses[-1:] - last).abs())
    return None if dist.get_rank() else (last, distance)


# %% ring_all_reduce
def ring_all_reduce(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    bounds = chunk_bounds(tensor.numel(), n).tolist()

    def chunk(i):
        return tensor.narrow(0, bounds[i % n], bounds[i % n + 1] - bounds[i % n])

    for first, adds in ((rank, True), (rank + 1, False)):
        for step in range(n - 1):
            landing = torch.empty_like(chunk(first - step - 1))
            sending = dist.P2POp(dist.isend, chunk(first - step), (rank + 1) % n)
            for work in dist.batch_isend_irecv([sending, dist.P2POp(dist.irecv, landing, (rank - 1) % n)]):
                work.wait()
            chunk(first - step - 1).copy_(landing + chunk(first - step - 1) * adds)


# %% train
def train(seed, samples, lr, steps):
    n = dist.get_world_size()
    x, y = batch(seed, dist.get_rank(), samples)
    a, b, c = x.T @ x, x.T @ y, y @ y
    w, losses = torch.zeros(4), ()
    for _ in range(steps):
        losses += (((w @ a @ w - 2 * w @ b + c) / samples).item(),)
        gradient = (w @ a - b).clone()
        if n > 1:
            dist.all_reduce(gradient)
        w = w - 2 * lr * gradient / (n * samples)
    return w, losses


# %% train_with_hooks
def train_with_hooks(seed, samples, hidden, lr, steps):
    n, model = dist.get_world_size(), make_model(seed, hidden)

    def average(p):
        if n > 1:
            mean = p.grad.clone()
            dist.all_reduce(mean)
            p.grad = mean.div(n)

    handles = [p.register_post_accumulate_grad_hook(average) for p in model.parameters()]
    x, y = batch(seed, dist.get_rank(), samples)
    for _ in range(steps):
        model.zero_grad(set_to_none=False)
        torch.mean((model(x).squeeze() - y) ** 2).backward()
        for p in model.parameters():
            p.data = p.data - lr * p.grad
    for handle in handles:
        handle.remove()
    return torch.cat([p.data.flatten() for p in model.parameters()])


# %% sum_pieces
def sum_pieces(tensor, sizes):
    stop = tensor.numel()
    for size in reversed(sizes):
        piece = tensor[stop - size : stop].clone()
        if dist.get_world_size() > 1:
            dist.all_reduce(piece)
        tensor[stop - size : stop] = piece
        stop -= size


# %% first_missing
def first_missing(trace, world_size):
    import torch

    ranks = torch.tensor([op.rank for op in trace if op.kind == "all_reduce"], dtype=torch.int64)
    calls = torch.bincount(ranks, minlength=world_size)
    low = calls.min()
    return None if (calls == low).all() else (int(low) + 1, torch.nonzero(calls == low).flatten().tolist())
