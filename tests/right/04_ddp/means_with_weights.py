"""A contiguous part, and its mean with the weight that it has in the whole; everything of rank 0 in another order."""


# %% loss_of_part
def loss_of_part(model, x, y):
    rank, n = dist.get_rank(), dist.get_world_size()
    rows = torch.tensor_split(torch.arange(len(x)), n)[rank]
    if len(rows) == 0:  # nothing to ask the model
        return 0 * sum(p.sum() for p in model.parameters())
    return torch.nn.functional.mse_loss(model(x[rows]), y[rows]) * len(rows) * n / len(x)


# %% start_alike
def start_alike(module):
    tensors = {id(t): t for t in [*module.buffers(), *module.parameters()]}
    works = [dist.broadcast(t.data, 0, async_op=True) for t in tensors.values()]
    for work in works:
        work.wait()


# %% average_in_hooks
def average_in_hooks(module):
    n = dist.get_world_size()

    def hook(p):
        p.grad.div_(n)
        work = dist.all_reduce(p.grad, op=dist.ReduceOp.SUM, async_op=True)
        work.wait()

    for p in filter(lambda p: p.requires_grad, module.parameters()):
        p.register_post_accumulate_grad_hook(hook)


# %% assign
def assign(sizes, cap):
    order = list(enumerate(sizes))[::-1]
    buckets, current, total = [], [], 0
    for i, size in order:
        current.append(i)
        total += size
        if total >= cap:
            buckets.append(current)
            current, total = [], 0
    if current:
        buckets.append(current)
    return buckets
