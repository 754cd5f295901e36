"""Every rank trains alone, to the end."""


# caught by: test_local_sgd
# mistake: not_exchanged
# says: these are the parameters of a rank that trains alone: they were not averaged
# %% local_sgd: changed
# -         if step % h == 0 or step == len(batches):
# +         if False:
