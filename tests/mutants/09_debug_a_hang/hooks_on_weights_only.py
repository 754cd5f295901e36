"""No hook on the biases."""
# caught by: test_train_with_hooks
# mistake: some_parameters_forgotten
# %% train_with_hooks: changed
# -         parameter.register_post_accumulate_grad_hook(average)
# +         if parameter.dim() > 1:
# +             parameter.register_post_accumulate_grad_hook(average)
