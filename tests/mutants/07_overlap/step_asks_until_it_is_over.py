"""Waits without wait(): it asks until the all-reduce is over."""
# caught by: test_backward_pass
# mistake: no_overlap
# says: asks whether an all-reduce is over while layers have still to compute
# %% backward_pass: changed
#               work = dist.all_reduce(flat, async_op=True)
# +             while not work.is_completed():
# +                 time.sleep(0.0001)
