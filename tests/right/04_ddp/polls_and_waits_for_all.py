"""A barrier after the broadcasts, and a loop that asks whether the all-reduce is over."""


# %% start_alike
def start_alike(module):
    for tensor in [*module.parameters(), *module.buffers()]:
        dist.broadcast(tensor.detach(), src=0)
    dist.barrier()


# %% average_in_hooks
def average_in_hooks(module):
    def hook(p):
        work = dist.all_reduce(p.grad, async_op=True)
        while not work.is_completed():
            pass
        p.grad /= dist.get_world_size()

    for p in module.parameters():
        if p.requires_grad:
            p.register_post_accumulate_grad_hook(hook)
