"""The first step is number 0: all average after it."""


# caught by: test_local_sgd
# mistake: one_off
# says: they were averaged one step too early
# %% local_sgd: changed
# -     for step, batch in enumerate(batches, 1):
# +     for step, batch in enumerate(batches):
# @@
# -         if step % h == 0 or step == len(batches):
# +         if step % h == 0 or step == len(batches) - 1:
