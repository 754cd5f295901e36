"""The hook gets hold of the gradient and forgets to divide."""
# caught by: test_train_with_hooks
# mistake: sum_or_mean
# %% train_with_hooks: changed
# -     def average(parameter):
# +     def add_up(parameter):
# @@
# -         parameter.grad /= n
# @@
# -         parameter.register_post_accumulate_grad_hook(average)
# +         parameter.register_post_accumulate_grad_hook(add_up)
