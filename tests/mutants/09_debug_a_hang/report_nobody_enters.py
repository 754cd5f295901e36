"""No rank enters the last all-reduce: nothing hangs, and rank 0 reports its own distance."""
# caught by: test_report
# mistake: not_exchanged
# %% report
def report(losses):
    for step in range(len(losses)):
        mean = mean_over_ranks(losses[step])
    if dist.get_rank() == 0:
        return mean.item(), (losses[-1] - mean).abs().item()
    return None
