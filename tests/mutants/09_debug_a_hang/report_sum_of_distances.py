"""The sum of the distances."""
# caught by: test_report
# mistake: sum_or_mean
# %% report: changed
# -     return (mean.item(), distance.item()) if dist.get_rank() == 0 else None
# +     return (mean.item(), distance.item() * dist.get_world_size()) if dist.get_rank() == 0 else None
