"""The hook takes the loop's variable, which is the last parameter when it is called."""


# caught by: test_average_in_hooks
# mistake: late_binding
# says: was not averaged
# %% average_in_hooks: changed
# -     def average(parameter):
# -         dist.all_reduce(parameter.grad)
# -         parameter.grad /= dist.get_world_size()
# +     def average(gradient):
# +         dist.all_reduce(gradient)
# +         gradient /= dist.get_world_size()
# @@
# -             parameter.register_post_accumulate_grad_hook(average)
# +             parameter.register_post_accumulate_grad_hook(lambda _: average(parameter.grad))
