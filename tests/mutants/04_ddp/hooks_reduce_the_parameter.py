"""The hook takes what it is given for the gradient, and it is the parameter: gradients are never synchronised."""
# caught by: test_average_in_hooks
# %% average_in_hooks
def average_in_hooks(module):
    def average(parameter):
        with torch.no_grad():
            dist.all_reduce(parameter)
            parameter /= dist.get_world_size()

    for parameter in module.parameters():
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(average)
