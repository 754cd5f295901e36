"""P is not all-reduced: the ranks' Q belong to different columns."""


# caught by: test_PowerSGD
# mistake: not_exchanged
# says: other ranks have other results
# %% PowerSGD: changed
# -         dist.all_reduce(p)
