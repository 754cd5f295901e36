"""The ranks to hear from are a tensor of numbers, each of which is a tensor, too: recv wants a whole number."""
# caught by: test_reduce
# says: x
# %% reduce: changed
# -     for other in range(n):
# +     for other in torch.arange(n):
