"""Sums in place, so that the caller's losses are gone."""
# caught by: test_report
# mistake: changes_its_input
# says: the tensor is wrong in
# %% report
def report(losses):
    n, last = dist.get_world_size(), losses[-1].clone()
    for step in range(len(losses)):
        dist.all_reduce(losses[step])
    mean = losses[-1] / n
    distance = mean_over_ranks((last - mean).abs())
    return (mean.item(), distance.item()) if dist.get_rank() == 0 else None
