"""The last rank reports."""
# caught by: test_report
# mistake: some_ranks_only
# %% report: changed
# -     return (mean.item(), distance.item()) if dist.get_rank() == 0 else None
# +     return (mean.item(), distance.item()) if dist.get_rank() == dist.get_world_size() - 1 else None
