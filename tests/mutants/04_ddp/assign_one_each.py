"""A bucket for each parameter: the cap is ignored."""
# caught by: test_assign
# %% assign
def assign(sizes, cap):
    return [[i] for i in reversed(range(len(sizes)))]
