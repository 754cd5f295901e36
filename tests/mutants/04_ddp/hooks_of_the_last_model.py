"""Takes away the hooks that it put on another model before."""
# caught by: test_average_in_hooks
# mistake: state_between_steps
# says: is that of its own part
# %% average_in_hooks: changed
# + hooked = []
# +
# +
#   def average_in_hooks(module):
#       """From now on every backward pass leaves the mean over the ranks in the gradients."""
#
# @@
# -     for parameter in module.parameters():
# +     while hooked:
# +         hooked.pop().remove()
# +     for parameter in module.parameters():
# @@
# -             parameter.register_post_accumulate_grad_hook(average)
# +             hooked.append(parameter.register_post_accumulate_grad_hook(average))
