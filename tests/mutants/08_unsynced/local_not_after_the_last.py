"""Steps that are left over after the last h are never averaged."""


# caught by: test_local_sgd
# mistake: last_left_out
# says: after the last step they were not averaged
# %% local_sgd: changed
# -         if step % h == 0 or step == len(batches):
# +         if step % h == 0:
