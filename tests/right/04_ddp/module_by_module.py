"""Goes through the modules one by one; a loop in place of each formula."""


# %% start_alike
def start_alike(module):
    seen = set()
    for part in module.modules():
        for name, tensor in [*part.named_parameters(recurse=False), *part.named_buffers(recurse=False)]:
            if id(tensor) not in seen:
                seen.add(id(tensor))
                with torch.no_grad():
                    dist.broadcast(tensor.detach(), src=0)


# %% loss_of_part
def loss_of_part(model, x, y):
    rank, n = dist.get_rank(), dist.get_world_size()
    mine = [i for i in range(x.shape[0]) if i % n == n - 1 - rank]
    output = model(x[mine])
    total = output.sum() * 0
    for row, i in enumerate(mine):
        total = total + ((output[row] - y[i]) ** 2).sum()
    return total / y.numel() * n


# %% assign
def assign(sizes, cap):
    def from_behind(last):
        if last < 0:
            return []
        bucket, size = [], 0
        while last >= 0 and (not bucket or size < cap):
            bucket, size, last = [*bucket, last], size + sizes[last], last - 1
        return [bucket, *from_behind(last)]

    return from_behind(len(sizes) - 1)


# %% average_in_hooks
def average_in_hooks(module):
    for name, p in module.named_parameters():
        if p.requires_grad:

            def hook(p, name=name):
                gradient = p.grad.clone()
                dist.all_reduce(gradient)
                p.grad.copy_(gradient / dist.get_world_size())

            p.register_post_accumulate_grad_hook(hook)
