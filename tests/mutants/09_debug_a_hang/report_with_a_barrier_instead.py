"""A barrier on all ranks before the line that only rank 0 reaches."""
# caught by: test_report
# mistake: symptom_for_cause
# %% report
def report(losses):
    for step in range(len(losses)):
        mean = mean_over_ranks(losses[step])
    dist.barrier()
    if dist.get_rank() == 0:
        distance = mean_over_ranks((losses[-1] - mean).abs())
        return mean.item(), distance.item()
    return None
