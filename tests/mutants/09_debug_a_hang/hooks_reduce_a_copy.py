"""The hook averages a copy of the gradient: the same messages, and none of them is used."""
# caught by: test_train_with_hooks
# mistake: not_exchanged
# %% train_with_hooks: changed
# -         dist.all_reduce(parameter.grad)
# -         parameter.grad /= n
# +         gradient = parameter.grad.clone()
# +         dist.all_reduce(gradient)
# +         gradient /= n
