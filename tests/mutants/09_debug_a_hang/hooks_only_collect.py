"""The hooks note whose turn it is; the gradients leave in a callback at the end of backward."""
# caught by: test_train_with_hooks
# mistake: no_overlap
# %% train_with_hooks: changed
# -     def average(parameter):
# -         dist.all_reduce(parameter.grad)
# -         parameter.grad /= n
# +     ready = []
# +
# +     def flush():
# +         while ready:
# +             parameter = ready.pop(0)
# +             dist.all_reduce(parameter.grad)
# +             parameter.grad /= n
# +
# +     def average(parameter):
# +         ready.append(parameter)
# +         if len(ready) == 4:
# +             flush()
