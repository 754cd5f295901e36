"""Takes the mean of the last loss at every step, so that the calls are as many as they should be."""
# caught by: test_report
# mistake: one_of_a_kind
# says: to all_reduce, and its loss is
# %% report: changed
# -         mean = mean_over_ranks(losses[step])
# +         mean = mean_over_ranks(losses[-1])
