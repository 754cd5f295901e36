"""The first gather and then the longer of the two, layer by layer, whatever is ahead."""
# caught by: test_forward_pass
# mistake: rule_of_thumb
# says: the time is
# %% forward_pass
def forward_pass(gathers, forwards, ahead):
    if not ahead:
        return sum(gathers) + sum(forwards)
    return gathers[0] + sum(map(max, gathers[1:], forwards[:-1])) + forwards[-1]
