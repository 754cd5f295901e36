"""From the last step to the first."""
# caught by: test_report
# mistake: reversed
# %% report: changed
# -     for step in range(len(losses)):
# -         mean = mean_over_ranks(losses[step])
# +     means = [mean_over_ranks(losses[step]) for step in reversed(range(len(losses)))]
# +     mean = means[0]
