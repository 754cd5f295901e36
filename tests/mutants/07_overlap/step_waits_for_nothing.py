"""Calls all_reduce without async_op, and wait() on the None that it returns."""
# caught by: test_backward_pass
# mistake: no_overlap
# says: (a collective without async_op=True waits itself and returns None)
# %% backward_pass: changed
# -             work = dist.all_reduce(flat, async_op=True)
# +             work = dist.all_reduce(flat)
