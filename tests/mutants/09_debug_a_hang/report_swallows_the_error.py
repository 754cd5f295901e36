"""Rank 0 still enters alone, gives up after a moment, and goes on with its own number."""
# caught by: test_report
# mistake: symptom_for_cause
# %% report
def report(losses):
    from datetime import timedelta

    for step in range(len(losses)):
        mean = mean_over_ranks(losses[step])
    if dist.get_rank() == 0:
        distance = (losses[-1] - mean).abs()
        try:
            dist.all_reduce(distance.clone(), async_op=True).wait(timedelta(seconds=0.2))
        except RuntimeError:
            pass
        return mean.item(), distance.item()
    return None
