"""The same messages, and none of them is used."""
# caught by: test_average_in_hooks
# %% average_in_hooks
def average_in_hooks(module):
    def average(parameter):
        gradient = parameter.grad / dist.get_world_size()
        dist.all_reduce(gradient)

    for parameter in module.parameters():
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(average)
