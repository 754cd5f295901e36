"""Waits for each bucket before the next layer computes."""
# caught by: test_backward_pass
# mistake: no_overlap
# says: waited for while layers had still to compute
# %% backward_pass: changed
#               work = dist.all_reduce(flat, async_op=True)
# +             work.wait()
