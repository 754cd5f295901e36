"""Averages the first gradient that a parameter gets after its gradient was None; a second pass before the step is left out."""
# caught by: test_average_in_hooks
# mistake: special_case
# %% average_in_hooks
def average_in_hooks(module):
    """From now on every backward pass leaves the mean over the ranks in the gradients."""
    seen = {}

    def average(parameter):
        if seen.get(parameter) is parameter.grad:
            return
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()
        seen[parameter] = parameter.grad

    for parameter in module.parameters():
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(average)
