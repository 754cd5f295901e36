"""The broken program, handed in under the new name: only rank 0 enters the last all-reduce."""
# caught by: test_report
# mistake: not_every_rank
# %% report
def report(losses):
    return broken_report(losses)
