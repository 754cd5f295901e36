"""A weight that two layers share is averaged twice."""


# caught by: test_local_sgd
# mistake: too_much_sent
# says: gave all_reduce
# %% local_sgd: changed
# -             for p in model.parameters():
# +             for p in [p for module in model.modules() for p in module.parameters(recurse=False)]:
