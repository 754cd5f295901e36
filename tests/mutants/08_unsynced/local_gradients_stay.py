"""Nobody clears the gradients."""


# caught by: test_local_sgd
# mistake: state_between_steps
# says: call optimizer.zero_grad() in each step
# %% local_sgd: changed
# -         optimizer.zero_grad()
