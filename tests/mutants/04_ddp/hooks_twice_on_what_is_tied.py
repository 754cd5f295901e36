"""Goes layer by layer, so a tied weight has two hooks: the mean of means is the mean, for twice the bytes."""
# caught by: test_average_in_hooks
# mistake: too_much_sent
# says: rank 0 called all_reduce on 196 bytes 4 times, expected 2
# %% average_in_hooks
def average_in_hooks(module):
    def average(parameter):
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()

    for layer in module.modules():
        for parameter in layer.parameters(recurse=False):
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(average)
