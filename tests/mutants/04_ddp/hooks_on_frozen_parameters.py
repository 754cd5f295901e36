"""Hooks every parameter; torch refuses the frozen ones."""
# caught by: test_average_in_hooks
# mistake: without_gradient
# %% average_in_hooks: changed
# -         if parameter.requires_grad:
# -             parameter.register_post_accumulate_grad_hook(average)
# +         parameter.register_post_accumulate_grad_hook(average)
