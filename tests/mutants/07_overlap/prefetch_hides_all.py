"""The longer of the two sums."""
# caught by: test_forward_pass
# mistake: rule_of_thumb
# says: that is the longer of the two sums
# %% forward_pass
def forward_pass(gathers, forwards, ahead):
    return max(sum(gathers), sum(forwards)) if ahead else sum(gathers) + sum(forwards)
