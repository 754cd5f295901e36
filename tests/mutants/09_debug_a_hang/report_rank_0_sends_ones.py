"""Rank 0 alone has its own distance; the others bring zeros."""
# caught by: test_report
# mistake: not_every_rank
# %% report: changed
# -     distance = mean_over_ranks((losses[-1] - mean).abs())
# +     mine = (losses[-1] - mean).abs()
# +     distance = mean_over_ranks(mine if dist.get_rank() == 0 else torch.zeros_like(mine))
