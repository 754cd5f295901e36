"""Takes the mean of six steps at the most."""
# caught by: test_report
# mistake: some_times_only
# %% report: changed
# -     for step in range(len(losses)):
# +     for step in [*range(len(losses))][-6:]:
