"""Takes the distance of the mean of what is summed, signs and all."""
# caught by: test_report
# mistake: part_missing
# %% report: changed
# -     distance = mean_over_ranks((losses[-1] - mean).abs())
# -     return (mean.item(), distance.item()) if dist.get_rank() == 0 else None
# +     distance = mean_over_ranks(losses[-1] - mean)
# +     return (mean.item(), distance.abs().item()) if dist.get_rank() == 0 else None
