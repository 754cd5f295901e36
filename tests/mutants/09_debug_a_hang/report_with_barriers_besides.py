"""Mended, and papered over: a barrier at every step, which nobody needs."""
# caught by: test_report
# %% report
def report(losses):
    for step in range(len(losses)):
        dist.barrier()
        mean = mean_over_ranks(losses[step])
    distance = mean_over_ranks((losses[-1] - mean).abs())
    return (mean.item(), distance.item()) if dist.get_rank() == 0 else None
