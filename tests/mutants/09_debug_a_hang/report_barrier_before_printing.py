"""Rank 0 makes sure that all are done before it reports: a barrier that only rank 0 comes to."""
# caught by: test_report
# mistake: not_every_rank
# says: never entered barrier #1
# %% report: changed
# -     return (mean.item(), distance.item()) if dist.get_rank() == 0 else None
# +     if dist.get_rank() == 0:
# +         dist.barrier()
# +         return mean.item(), distance.item()
# +     return None
