"""Every rank enters, and every rank reports."""
# caught by: test_report
# %% report
def report(losses):
    for step in range(len(losses)):
        mean = mean_over_ranks(losses[step])
    distance = mean_over_ranks((losses[-1] - mean).abs())
    return mean.item(), distance.item()
