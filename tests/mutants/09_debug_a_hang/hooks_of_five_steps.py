"""After five steps the hooks do nothing any more."""
# caught by: test_train_with_hooks
# mistake: some_times_only
# %% train_with_hooks: changed
# +     calls = {}
# +
#       def average(parameter):
# -         dist.all_reduce(parameter.grad)
# -         parameter.grad /= n
# +         calls[parameter] = calls.get(parameter, 0) + 1
# +         if calls[parameter] <= 5:
# +             dist.all_reduce(parameter.grad)
# +             parameter.grad /= n
