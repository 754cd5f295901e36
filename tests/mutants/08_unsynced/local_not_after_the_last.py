"""Steps that are left over after the last h are never averaged."""


# caught by: test_local_sgd
# says: on rank 0 at the end the vector of parameters is off by up to
# %% local_sgd: changed
# -         if step % h == 0 or step == len(batches):
# +         if step % h == 0:
