"""Waits without wait() of the handle: by its future."""
# caught by: test_backward_pass
# mistake: no_overlap
# says: asks whether an all-reduce is over while layers have still to compute
# %% backward_pass: changed
#               work = dist.all_reduce(flat, async_op=True)
# +             work.get_future().wait()
