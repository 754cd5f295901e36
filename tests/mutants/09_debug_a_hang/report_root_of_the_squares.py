"""The root of the mean square."""
# caught by: test_report
# mistake: other_algorithm
# %% report: changed
# -     distance = mean_over_ranks((losses[-1] - mean).abs())
# -     return (mean.item(), distance.item()) if dist.get_rank() == 0 else None
# +     distance = mean_over_ranks((losses[-1] - mean).square())
# +     return (mean.item(), distance.sqrt().item()) if dist.get_rank() == 0 else None
