"""A bucket for each parameter: the cap is ignored."""
# caught by: test_assign
# mistake: argument_ignored
# %% assign
def assign(sizes, cap):
    return [[i] for i in reversed(range(len(sizes)))]
