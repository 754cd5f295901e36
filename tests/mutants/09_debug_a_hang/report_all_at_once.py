"""One all-reduce of all losses."""
# caught by: test_report
# mistake: too_much_sent
# %% report: changed
# -     for step in range(len(losses)):
# -         mean = mean_over_ranks(losses[step])
# +     mean = mean_over_ranks(losses)[-1]
