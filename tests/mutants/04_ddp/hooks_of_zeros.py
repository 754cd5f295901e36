"""Averages a buffer that was never filled: on every rank the same gradients, all zeros."""
# caught by: test_average_in_hooks
# %% average_in_hooks
def average_in_hooks(module):
    def average(parameter):
        flat = torch.zeros_like(parameter)
        dist.all_reduce(flat)
        parameter.grad = flat / dist.get_world_size()

    for parameter in module.parameters():
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(average)
