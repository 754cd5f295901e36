"""A formula for layers that are alike."""
# caught by: test_forward_pass
# mistake: one_for_all
# says: the time is
# %% forward_pass
def forward_pass(gathers, forwards, ahead):
    n, gather, forward = len(gathers), gathers[0], forwards[0]
    if ahead == 0:
        return n * (gather + forward)
    return gather + (n - 1) * max(gather, forward) + forward
