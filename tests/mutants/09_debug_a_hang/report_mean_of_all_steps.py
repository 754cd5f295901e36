"""The mean of all steps."""
# caught by: test_report
# mistake: wrong_kind
# %% report: changed
# -     for step in range(len(losses)):
# -         mean = mean_over_ranks(losses[step])
# +     means = [mean_over_ranks(losses[step]) for step in range(len(losses))]
# +     mean = sum(means) / len(means)
