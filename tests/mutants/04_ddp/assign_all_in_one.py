"""One bucket for all: the cap is ignored."""
# caught by: test_assign
# mistake: argument_ignored
# %% assign
def assign(sizes, cap):
    return [list(reversed(range(len(sizes))))]
