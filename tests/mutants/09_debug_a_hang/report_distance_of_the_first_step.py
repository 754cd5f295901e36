"""The distance of the first loss."""
# caught by: test_report
# mistake: wrong_kind
# %% report: changed
# -     distance = mean_over_ranks((losses[-1] - mean).abs())
# +     distance = mean_over_ranks((losses[0] - mean).abs())
