"""Nobody clears the gradients."""


# caught by: test_local_sgd
# says: call optimizer.zero_grad() in each step
# %% local_sgd: changed
# -         optimizer.zero_grad()
