"""Takes the batches out of the list that it was given."""


# caught by: test_local_sgd
# mistake: changes_its_input
# says: changed the list of batches that it was given
# %% local_sgd: changed
# -     for step, batch in enumerate(batches, 1):
# +     steps, step = len(batches), 0
# +     while batches:
# +         batch = batches.pop(0)
# +         step += 1
# @@
# -         if step % h == 0 or step == len(batches):
# +         if step % h == 0 or step == steps:
