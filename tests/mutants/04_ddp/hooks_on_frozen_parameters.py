"""Hooks every parameter; torch refuses the frozen ones."""
# caught by: test_average_in_hooks
# %% average_in_hooks
def average_in_hooks(module):
    def average(parameter):
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()

    for parameter in module.parameters():
        parameter.register_post_accumulate_grad_hook(average)
