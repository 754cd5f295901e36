"""Every rank enters, and every rank reports."""
# caught by: test_report
# mistake: returns_wrong_ranks
# %% report: changed
# -     return (mean.item(), distance.item()) if dist.get_rank() == 0 else None
# +     return mean.item(), distance.item()
