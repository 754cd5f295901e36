"""Starts the all-reduce and divides at once; nobody waits for it."""
# caught by: test_average_in_hooks
# %% average_in_hooks
def average_in_hooks(module):
    def average(parameter):
        dist.all_reduce(parameter.grad, async_op=True)
        parameter.grad /= dist.get_world_size()

    for parameter in module.parameters():
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(average)
